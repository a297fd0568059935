"""Repulsion of t-SNE between all points: pair by pair for few, on a grid for many."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

# Up to this number of points, all pairs take less time than the grid (benchmarks/layout.py).
_FEW_POINTS = 1000
# Distance of grid nodes. Forces change over a distance of one; on coarser grids clusters become
# streaks along an axis.
_SPACING = 0.3
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
    forces = np.empty_like(positions)
    total = _add_pairs(positions, forces)
    return Repulsion(forces, max(total, _LEAST_TOTAL * len(positions)))


def repel_on_grid(positions: NDArray[np.float32], n_threads: int = 1) -> Repulsion:
    """Approximate the forces between all points.

    The points are spread on a grid, the grid is convolved with the kernel by FFT, and the result is
    interpolated at the points (as in FIt-SNE): the time grows with the number of points and the
    area of the map, not with the number of pairs.
    """
    lowest = positions.min(axis=0)
    span = max(float(np.ptp(positions, axis=0).max()), float(np.finfo(np.float32).tiny))
    most = min(max((_NODES_PER_POINT * len(positions)) ** 0.5, _FEWEST_NODES), _MOST_NODES)
    n_cells = float(np.clip(span / _SPACING, _FEWEST_NODES, most))
    spacing = span / n_cells
    n_nodes = int(n_cells) + 2 * _MARGIN
    cells = (positions - lowest) / np.float32(spacing) + np.float32(_MARGIN - 1)
    size = next_fast_len(2 * n_nodes, real=True)
    density = np.zeros((n_nodes, n_nodes), dtype=np.float32)
    _spread(cells, density)
    spectrum = rfft2(density, (size, size), workers=n_threads)
    fields = np.empty((3, n_nodes, n_nodes), dtype=np.float32)
    for field, kernel in zip(fields, _kernel_spectra(size, spacing), strict=True):
        field[:] = irfft2(spectrum * kernel, (size, size), workers=n_threads)[:n_nodes, :n_nodes]
    values = np.empty((len(positions), 3), dtype=np.float32)
    _interpolate(cells, fields, values)
    total = float(values[:, 0].sum(dtype=np.float64)) - len(positions)
    return Repulsion(values[:, 1:], max(total, _LEAST_TOTAL * len(positions)))


@njit(nogil=True, cache=True)
def _add_pairs(positions: Any, forces: Any) -> float:
    """Write the force on every point; return the sum of the kernel over all pairs."""
    total = 0.0
    for point in range(len(positions)):
        force_x, force_y = np.float32(0), np.float32(0)
        for other in range(len(positions)):
            x = positions[point, 0] - positions[other, 0]
            y = positions[point, 1] - positions[other, 1]
            kernel = np.float32(1) / (np.float32(1) + x * x + y * y)
            force_x += kernel * kernel * x
            force_y += kernel * kernel * y
            total += kernel
        forces[point, 0], forces[point, 1] = force_x, force_y
    return total - len(positions)


@lru_cache(maxsize=2)
def _kernel_spectra(size: int, spacing: float) -> NDArray[np.complex64]:
    """Return the Fourier transforms of the kernel and of both components of the force."""
    nodes = np.arange(size)
    offsets = spacing * np.where(nodes > size // 2, nodes - size, nodes)
    kernel = 1 / (1 + offsets[:, None] ** 2 + offsets**2)
    force = kernel**2 * offsets[:, None]
    fields = np.stack([kernel, force, force.T]).astype(np.float32)
    return np.asarray(rfft2(fields))


@njit(nogil=True, cache=True)
def _patch(cell: Any, weights: Any) -> tuple[int, int]:
    """Write cubic interpolation weights along both axes; return the first node of the patch."""
    for axis in range(2):
        t = cell[axis] - np.floor(cell[axis])
        weights[axis, 0] = -t * (t - 1) * (t - 2) / 6
        weights[axis, 1] = (t + 1) * (t - 1) * (t - 2) / 2
        weights[axis, 2] = -(t + 1) * t * (t - 2) / 2
        weights[axis, 3] = (t + 1) * t * (t - 1) / 6
    return int(cell[0]) - 1, int(cell[1]) - 1


@njit(nogil=True, cache=True)
def _spread(cells: Any, density: Any) -> None:
    weights = np.empty((2, 4), dtype=np.float32)
    for point in range(len(cells)):
        row, column = _patch(cells[point], weights)
        for a in range(4):
            for b in range(4):
                density[row + a, column + b] += weights[0, a] * weights[1, b]


@njit(nogil=True, cache=True)
def _interpolate(cells: Any, fields: Any, values: Any) -> None:
    weights = np.empty((2, 4), dtype=np.float32)
    for point in range(len(cells)):
        row, column = _patch(cells[point], weights)
        for field in range(len(fields)):
            value = np.float32(0)
            for a in range(4):
                for b in range(4):
                    value += fields[field, row + a, column + b] * weights[0, a] * weights[1, b]
            values[point, field] = value
