"""Repulsion of t-SNE between all points: pair by pair for few, on a grid for many."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, irfft, next_fast_len, rfft, rfft2
from scipy.sparse import csr_array

from nouncut.compute.threads import run_tasks

# Up to this number of points, all pairs take less time than the grid (benchmarks/layout.py).
_FEW_POINTS = 800
_ROWS_AT_ONCE = 128
# Distance of grid nodes. Forces change over a distance of one; on coarser grids clusters become
# streaks along an axis.
_SPACING = 0.3
_SPACING_STEP = 1.05
# Small maps get a finer grid; very large maps, and maps with few points, a coarser one.
_FEWEST_NODES, _MOST_NODES = 64, 1024
_NODES_PER_POINT = 16
# Every point's own share is subtracted from the total, which the grid knows only approximately;
# this limit per point keeps the rest positive.
_LEAST_TOTAL = 0.01
# Interpolation uses the four by four nodes around a point.
_MARGIN = 2


class Repulsion(NamedTuple):
    """Unscaled forces on all points, and the sum of the kernel over all pairs."""

    forces: NDArray[np.float32]
    total: float


def repel(positions: NDArray[np.float32], n_threads: int = 1) -> Repulsion:
    """Return the forces between all points under Student's t kernel."""
    few = len(positions) <= _FEW_POINTS
    return repel_pairs(positions) if few else repel_on_grid(positions, n_threads)


def repel_pairs(positions: NDArray[np.float32], n_threads: int = 1) -> Repulsion:
    """Compute the forces of all pairs, on one thread."""
    n = len(positions)
    centred = positions - positions.mean(axis=0)
    ones, squares = np.ones(n, dtype=np.float32), np.einsum("ij,ij->i", centred, centred)
    # One more than the squared distances, as a product of matrices: few passes over all pairs.
    left = np.column_stack([-2 * centred, squares + 1, ones])
    right = np.vstack([centred.T, ones, squares])
    summed = np.column_stack([centred, ones])
    forces, total = np.empty_like(positions), 0.0
    buffer = np.empty((min(n, _ROWS_AT_ONCE), n), dtype=np.float32)
    for first in range(0, n, _ROWS_AT_ONCE):
        rows = slice(first, min(first + _ROWS_AT_ONCE, n))
        kernel = buffer[: rows.stop - first]
        np.matmul(left[rows], right, out=kernel)
        np.divide(1, kernel, out=kernel)
        total += float((kernel @ ones).sum(dtype=np.float64))
        kernel *= kernel
        sums = kernel @ summed
        forces[rows] = centred[rows] * sums[:, 2:] - sums[:, :2]
    return Repulsion(forces, max(total - n, _LEAST_TOTAL * n))


def repel_on_grid(positions: NDArray[np.float32], n_threads: int = 1) -> Repulsion:
    """Approximate the forces between all points.

    The points are spread on a grid, the grid is convolved with the kernel by FFT, and the result is
    interpolated at the points (as in FIt-SNE): the time grows with the number of points and the
    area of the map, not with the number of pairs.
    """
    n = len(positions)
    lowest = positions.min(axis=0)
    span = max(float(np.ptp(positions, axis=0).max()), float(np.finfo(np.float32).tiny))
    spacing = _spacing(span, n)
    n_nodes = int(span / spacing) + 2 * _MARGIN
    cells = (positions - lowest) / np.float32(spacing) + np.float32(_MARGIN - 1)
    size = next_fast_len(2 * n_nodes, real=True)
    weights = _interpolation(cells, n_nodes)
    density = (weights.T @ np.ones(n, dtype=np.float32)).reshape(n_nodes, n_nodes)
    # Most of the padded grid is zero or not needed, so its rows are not transformed.
    spectrum = fft(rfft(density, size), size, axis=0, overwrite_x=True)
    values = np.empty((3, n), dtype=np.float32)

    kernels = _kernel_spectra(size, spacing)

    def convolve(number: int) -> None:
        columns = ifft(spectrum * kernels[number], axis=0, overwrite_x=True)[:n_nodes]
        field = irfft(columns, size, overwrite_x=True)[:, :n_nodes]
        values[number] = weights @ field.ravel()

    run_tasks(convolve, range(3), n_threads)
    total = float(values[0].sum(dtype=np.float64)) - n
    return Repulsion(values[1:].T, max(total, _LEAST_TOTAL * n))


def _spacing(span: float, n_points: int) -> float:
    """Return the distance of grid nodes for a map of some extent."""
    most = min(max((_NODES_PER_POINT * n_points) ** 0.5, _FEWEST_NODES), _MOST_NODES)
    wanted = span / float(np.clip(span / _SPACING, _FEWEST_NODES, most))
    # A map grows a little in every step: few different distances make few different kernels.
    steps = np.log(wanted / _SPACING) / np.log(_SPACING_STEP)
    return float(_SPACING * _SPACING_STEP ** np.ceil(steps - 1e-6))


@lru_cache(maxsize=2)
def _kernel_spectra(size: int, spacing: float) -> NDArray[np.complex64]:
    """Return the Fourier transforms of the kernel and of both components of the force."""
    nodes = np.arange(size)
    offsets = spacing * np.where(nodes > size // 2, nodes - size, nodes)
    kernel = 1 / (1 + offsets[:, None] ** 2 + offsets**2)
    force = kernel**2 * offsets[:, None]
    fields = np.stack([kernel, force, force.T]).astype(np.float32)
    return np.asarray(rfft2(fields))


def _interpolation(cells: NDArray[np.float32], n_nodes: int) -> csr_array:
    """Return the cubic interpolation weights of the nodes around every point, (n, n_nodes^2)."""
    first = cells.astype(np.int32) - 1
    t = cells - np.floor(cells)
    axes = np.stack(
        [
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        ],
        axis=2,
    )
    weights = axes[:, 0, :, None] * axes[:, 1, None, :]
    patch = np.arange(4, dtype=np.int32)
    patch = n_nodes * patch[:, None] + patch
    nodes = (n_nodes * first[:, 0] + first[:, 1])[:, None] + patch.ravel()
    indptr = np.arange(0, weights.size + 1, 16, dtype=np.int32)
    return csr_array((weights.ravel(), nodes.ravel(), indptr), shape=(len(cells), n_nodes**2))
