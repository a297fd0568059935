"""Candidates for neighbours under any prompt, found with a cheaper kernel and in cells.

Softmax probabilities over thousands of nouns have nearly low rank: projected on a few hundred
directions, their inner products hardly change. One prompt, the mean of all, gives a short list of
candidates for every image, and only these need the exact kernels of all prompts.

Cells are groups of similar images, as in the inverted file of nearest-neighbour libraries. Those
index one metric; this kernel is a product of two inner products, and its blocks, cell against cell,
are matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.compute.threads import blas_threads, run_tasks
from nouncut.method.kernel import softmax_blocks

RANK = 256
SAMPLE_SIZE = 1024
# Images per cell, and the cells that are compared with each one.
CELL_SIZE = 500
NEAR_SHARE = 0.03
FEWEST_NEAR = 24
# k-means of the cells: images per centre, and rounds.
IMAGES_PER_CENTER = 50
_ROUNDS = 6
_ROWS_AT_ONCE = 4096

# Returns the rows that describe some images, given by a slice or by their indices.
Describe = Callable[[Any], NDArray[np.float32]]


def noun_factors(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    *,
    rank: int = RANK,
    n_threads: int = 1,
    weight: float = 1.0,
) -> NDArray[np.float32]:
    """Return rows (n_images, rank) with nearly the inner products of the noun probabilities.

    The probabilities are projected on their leading right singular vectors, estimated from 1,024
    evenly spaced images; they are never held all at once.
    """
    directions = noun_directions(
        features, nouns, tau, rank=rank, n_threads=n_threads, weight=weight
    )
    return project_nouns(features, nouns, tau, directions, n_threads, weight)


def noun_directions(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    *,
    rank: int = RANK,
    n_threads: int = 1,
    weight: float = 1.0,
) -> NDArray[np.float32]:
    """Return the leading right singular vectors (n_nouns, rank) of the noun probabilities."""
    n_images = len(features)
    picked = np.linspace(0, n_images - 1, min(n_images, SAMPLE_SIZE)).astype(np.intp)
    sample = np.empty((len(picked), len(nouns)), np.float32)
    softmax_blocks(features[picked], nouns, tau, sample.__setitem__, n_threads, weight)
    return np.ascontiguousarray(singular_directions(sample)[:, :rank])


def project_nouns(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    directions: NDArray[np.float32],
    n_threads: int = 1,
    weight: float = 1.0,
) -> NDArray[np.float32]:
    """Return the noun probabilities of images, projected on some directions."""
    factors = np.empty((len(features), directions.shape[1]), np.float32)

    def project(rows: slice, block: NDArray[Any]) -> None:
        factors[rows] = block @ directions

    softmax_blocks(features, nouns, tau, project, n_threads, weight)
    return factors


def describe_rows(features: NDArray[Any], factors: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    """Return the rows by which images are put into cells."""
    return np.hstack([features, *map(unit_rows, factors)]).astype(np.float32, copy=False)


def near_cells(centers: NDArray[Any], n_near: int) -> NDArray[np.intp]:
    """Return the nearest cells of every cell, itself first."""
    distances = np.square(centers).sum(axis=1) - 2 * centers @ centers.T
    return np.asarray(np.argsort(distances, axis=1, kind="stable")[:, :n_near])


def candidate_pairs(chosen: NDArray[np.int32]) -> csr_array:
    """Return all pairs in which one image has chosen the other, once, above the diagonal.

    `chosen` (n_images, n_candidates) holds the images that every image has chosen, -1 if none.
    """
    n = len(chosen)
    chooser = np.arange(n, dtype=np.int64)[:, None]
    # One number per pair, which sorts them by row and column.
    codes = n * np.minimum(chooser, chosen) + np.maximum(chooser, chosen)
    codes = np.sort(codes[chosen >= 0])
    codes = codes[np.diff(codes, prepend=-1) > 0]
    rows, columns = np.divmod(codes, n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    kind = np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64
    pairs = np.ones(len(codes), np.int8), columns.astype(kind), indptr.astype(kind)
    return csr_array(pairs, shape=(n, n))


def near_blocks(
    features: NDArray[Any],
    factors: Sequence[NDArray[Any]],
    n_threads: int = 1,
    *,
    cell_size: int = CELL_SIZE,
    fewest_near: int = FEWEST_NEAR,
) -> tuple[NDArray[np.intp], list[tuple[slice, slice]]]:
    """Return an order of the images by cells, and the pairs of near cells as slices of it."""

    def describe(images: Any) -> NDArray[np.float32]:
        return describe_rows(features[images], [part[images] for part in factors])

    n_images = len(features)
    n_cells = max(1, -(-n_images // cell_size))
    centers = cell_centers(describe, n_images, n_cells, n_threads)
    cells = assign_cells(describe, n_images, centers, n_threads)
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(np.bincount(cells, minlength=n_cells))
    parts = [slice(int(a), int(b)) for a, b in zip(np.r_[0, ends[:-1]], ends, strict=True)]
    n_near = min(n_cells, max(fewest_near, round(NEAR_SHARE * n_cells)))
    near = near_cells(centers, n_near)
    pairs = {(min(a, b), max(a, b)) for a, others in enumerate(near.tolist()) for b in others}
    filled = [part.stop > part.start for part in parts]
    pairs |= {(cell, cell) for cell in range(n_cells)}
    return order, [(parts[a], parts[b]) for a, b in sorted(pairs) if filled[a] and filled[b]]


def singular_directions(sample: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the right singular vectors of a sample of probabilities, the leading ones first."""
    with blas_threads(1):
        if len(sample) <= sample.shape[1]:
            squares, left = eigh(sample.astype(np.float64) @ sample.T, driver="evd")
            large = squares > 1e-9 * squares[-1]
            directions = sample.T @ (left[:, large] / np.sqrt(squares[large])).astype(np.float32)
        else:
            directions = eigh(sample.T @ sample, driver="evd")[1]
    return np.asarray(directions[:, ::-1])


def cell_centers(
    describe: Describe, n_images: int, n_cells: int, n_threads: int
) -> NDArray[np.float32]:
    """Return the centres of k-means on evenly spaced images."""
    size = min(n_images, n_cells * IMAGES_PER_CENTER)
    sample = describe(np.linspace(0, n_images - 1, size).astype(np.intp))
    centers = sample[np.linspace(0, size - 1, n_cells).astype(np.intp)]
    for _ in range(_ROUNDS):
        cells = assign_cells(sample.__getitem__, size, centers, n_threads)
        sums = label_matrix(cells, n_cells).astype(np.float32).T @ sample
        sizes = np.bincount(cells, minlength=n_cells)[:, None]
        centers = np.where(sizes > 0, sums / np.maximum(sizes, 1), centers)
        centers = centers.astype(np.float32)
    return centers


def assign_cells(
    describe: Describe, n_images: int, centers: NDArray[Any], n_threads: int
) -> NDArray[np.intp]:
    """Return the cell with the nearest centre for every image."""
    nearest = np.empty(n_images, dtype=np.intp)
    half_squares = np.square(centers).sum(axis=1) / 2

    def choose(first: int) -> None:
        part = slice(first, first + _ROWS_AT_ONCE)
        nearest[part] = np.argmax(describe(part) @ centers.T - half_squares, axis=1)

    with blas_threads(1):
        run_tasks(choose, range(0, n_images, _ROWS_AT_ONCE), n_threads)
    return nearest
