"""Cells of alike images: among very many images only those of near cells are compared.

This is the inverted file of approximate nearest-neighbour libraries, with two differences that
matter here. The kernel is a product of two inner products, which no index of one metric knows;
and whole blocks of it, cell against cell, are matrix products, which a CPU does best.

Where all images are compared, the cells say in which order: alike images side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import blas_threads, run_tasks

# Rows that describe some images, given by a slice or by their numbers.
Describe = Callable[[Any], NDArray[np.float32]]
_CELL_SIZE = 500
_NEAR_SHARE = 0.03
_FEWEST_NEAR = 24
_IMAGES_PER_CENTRE = 50
_ROUNDS = 6
_ROWS_AT_ONCE = 4096


def near_blocks(
    features: NDArray[Any],
    factors: Sequence[NDArray[Any]],
    n_threads: int = 1,
    *,
    cell_size: int = _CELL_SIZE,
) -> tuple[NDArray[np.intp], list[tuple[slice, slice]]]:
    """Sort images into cells and say which cells are near each other."""

    def describe(images: Any) -> NDArray[np.float32]:
        parts = [features[images], *(unit_rows(part[images]) for part in factors)]
        return np.hstack(parts).astype(np.float32, copy=False)

    n_images = len(features)
    n_cells = max(1, -(-n_images // cell_size))
    centers = _centers(describe, n_images, n_cells, n_threads)
    cells = _nearest(describe, n_images, centers, n_threads)
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(np.bincount(cells, minlength=n_cells))
    parts = [slice(int(a), int(b)) for a, b in zip(np.r_[0, ends[:-1]], ends, strict=True)]
    n_near = min(n_cells, max(_FEWEST_NEAR, round(_NEAR_SHARE * n_cells)))
    distances = np.square(centers).sum(axis=1) - 2 * centers @ centers.T
    near = np.argsort(distances, axis=1, kind="stable")[:, :n_near]
    pairs = {(min(a, b), max(a, b)) for a, others in enumerate(near.tolist()) for b in others}
    filled = [part.stop > part.start for part in parts]
    pairs |= {(cell, cell) for cell in range(n_cells)}
    return order, [(parts[a], parts[b]) for a, b in sorted(pairs) if filled[a] and filled[b]]


def _centers(
    describe: Describe, n_images: int, n_cells: int, n_threads: int
) -> NDArray[np.float32]:
    """Return the centres of k-means on a sample of the images, evenly spaced throughout."""
    size = min(n_images, n_cells * _IMAGES_PER_CENTRE)
    sample = describe(np.linspace(0, n_images - 1, size).astype(np.intp))
    centers = sample[np.linspace(0, size - 1, n_cells).astype(np.intp)]
    for _ in range(_ROUNDS):
        cells = _nearest(sample.__getitem__, size, centers, n_threads)
        members = csr_array((np.ones(size, np.float32), (cells, np.arange(size))))
        members.resize((n_cells, size))
        sizes = np.bincount(cells, minlength=n_cells)[:, None]
        centers = np.where(sizes > 0, (members @ sample) / np.maximum(sizes, 1), centers)
        centers = centers.astype(np.float32)
    return centers


def _nearest(
    describe: Describe, n_images: int, centers: NDArray[Any], n_threads: int
) -> NDArray[np.intp]:
    nearest = np.empty(n_images, dtype=np.intp)
    half_squares = np.square(centers).sum(axis=1) / 2

    def choose(first: int) -> None:
        part = slice(first, first + _ROWS_AT_ONCE)
        nearest[part] = np.argmax(describe(part) @ centers.T - half_squares, axis=1)

    with blas_threads(1):
        run_tasks(choose, range(0, n_images, _ROWS_AT_ONCE), n_threads)
    return nearest
