"""The q nearest images of every image under the kernel, without forming the kernel matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import count, pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.progress import Progress
from nouncut.compute.threads import blas_threads, run_tasks

BLOCK_SIZE = 512
# Products that are compared together before any of them is offered.
_CHUNK = 64


class Neighbors(NamedTuple):
    """The nearest images of every image (n_images, q), largest kernel value first; -1 if none."""

    indices: NDArray[np.int32]
    values: NDArray[np.float32]


@njit(nogil=True, cache=True)
def _sift_down(values: Any, indices: Any) -> None:
    """Restore the heap below its root; the smallest value, ties by larger index, is on top."""
    size = values.shape[0]
    parent = 0
    while True:
        weakest = parent
        for child in (2 * parent + 1, 2 * parent + 2):
            if child < size and (
                values[child] < values[weakest]
                or (values[child] == values[weakest] and indices[child] > indices[weakest])
            ):
                weakest = child
        if weakest == parent:
            return
        values[parent], values[weakest] = values[weakest], values[parent]
        indices[parent], indices[weakest] = indices[weakest], indices[parent]
        parent = weakest


@njit(nogil=True, cache=True)
def _offer(value: Any, index: int, values: Any, indices: Any) -> None:
    """Put an image into a heap if it is nearer than the weakest one there."""
    # Ranking equal values by index makes the outcome independent of the order of offers.
    if value > values[0] or (value == values[0] and index < indices[0]):
        values[0] = value
        indices[0] = index
        _sift_down(values, indices)


@njit(nogil=True, cache=True)
def offer_rows(visual: Any, semantic: Any, column: int, values: Any, indices: Any) -> None:
    """Offer the columns of a kernel block, which start at image `column`, to its rows."""
    for r in range(visual.shape[0]):
        for c in range(visual.shape[1]):
            value = visual[r, c] * semantic[r, c]
            if value > 0 and value >= values[r, 0]:
                _offer(value, column + c, values[r], indices[r])


@njit(nogil=True, cache=True)
def _offer_both(
    visual: Any, semantic: Any, row: int, column: int, values: Any, indices: Any
) -> None:
    """Offer rows and columns of a symmetric kernel's block to each other, without the diagonal."""
    weakest = values[column : column + visual.shape[1], 0].copy()
    for r in range(visual.shape[0]):
        i = row + r
        n_columns = visual.shape[1] if row != column else r
        for first in range(0, n_columns, _CHUNK):
            last = min(first + _CHUNK, n_columns)
            # Nearly all products are too small for both sides. This loop has no branches, so the
            # compiler vectorises it.
            threshold, n_large = values[i, 0], 0
            for c in range(first, last):
                value = visual[r, c] * semantic[r, c]
                n_large += (value >= threshold) | (value >= weakest[c])
            if n_large == 0:
                continue
            for c in range(first, last):
                value = visual[r, c] * semantic[r, c]
                if value > 0:
                    if value >= values[i, 0]:
                        _offer(value, column + c, values[i], indices[i])
                    if value >= weakest[c]:
                        _offer(value, i, values[column + c], indices[column + c])
                        weakest[c] = values[column + c, 0]


@njit(nogil=True, cache=True)
def _offer_pairs(
    indptr: Any, others: Any, products: Any, values: Any, indices: Any, first: int, last: int
) -> None:
    """Offer the images of every pair to each other, if the receiver is in [first, last)."""
    for i in range(last):
        for entry in range(indptr[i], indptr[i + 1]):
            value = products[entry]
            j = others[entry]
            if value > 0:
                if i >= first and value >= values[i, 0]:
                    _offer(value, j, values[i], indices[i])
                if first <= j < last and value >= values[j, 0]:
                    _offer(value, i, values[j], indices[j])


def offer_pairs(
    pairs: csr_array, products: NDArray[np.float32], found: Neighbors, n_threads: int = 1
) -> None:
    """Offer the images of every pair to each other's heaps; pairs are above the diagonal."""

    def offer(part: tuple[int, int]) -> None:
        _offer_pairs(pairs.indptr, pairs.indices, products, found.values, found.indices, *part)

    cuts = np.linspace(0, pairs.shape[0], n_threads + 1).astype(int).tolist()
    run_tasks(offer, list(pairwise(cuts)), n_threads)


def kernel_neighbors(
    features: NDArray[Any],
    probabilities: Sequence[NDArray[Any]],
    q: int,
    *,
    queries: tuple[NDArray[Any], Sequence[NDArray[Any]]] | None = None,
    block_size: int = BLOCK_SIZE,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> list[Neighbors]:
    """Find the q largest kernel values of every image (or query), for every prompt in one pass."""
    if queries is None:
        blocks = all_blocks(len(features), block_size)
        nearest = search_blocks(
            features, probabilities, q, blocks, n_threads=n_threads, progress=progress
        )
        return [sort_heaps(found) for found in nearest]
    nearest = [empty_heaps(len(queries[0]), q) for _ in range(max(1, len(probabilities)))]

    def search(start: int) -> None:
        rows = slice(start, start + block_size)
        for column in range(0, len(features), block_size):
            columns = slice(column, column + block_size)
            visual = queries[0][rows] @ features[columns].T
            for prompt, (indices, values) in enumerate(nearest):
                semantic = np.ones_like(visual)
                if probabilities:
                    semantic = queries[1][prompt][rows] @ probabilities[prompt][columns].T
                offer_rows(visual, semantic, column, values[rows], indices[rows])

    with blas_threads(1):
        run_tasks(search, range(0, len(queries[0]), block_size), n_threads)
    return [sort_heaps(found) for found in nearest]


def all_blocks(n_images: int, block_size: int = BLOCK_SIZE) -> list[tuple[slice, slice]]:
    """Return the blocks of the kernel on and above its diagonal, the nearest to it first."""
    # If similar images are next to each other, the first blocks fill the heaps with near images.
    # Consecutive blocks seldom share rows or columns, so threads seldom wait for each other.
    slices = [slice(start, start + block_size) for start in range(0, n_images, block_size)]
    return [
        (rows, columns)
        for distance in range(len(slices))
        for rows, columns in zip(slices, slices[distance:], strict=False)
    ]


def search_blocks(
    features: NDArray[Any],
    probabilities: Sequence[NDArray[Any]],
    q: int,
    blocks: Iterable[tuple[slice, slice]],
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> list[Neighbors]:
    """Find the q largest kernel values of every image in some blocks of the kernel, as heaps."""
    nearest = [empty_heaps(len(features), q) for _ in range(max(1, len(probabilities)))]
    todo = list(blocks)
    locks = {part.start: Lock() for block in todo for part in block}
    done = count(1)

    def search(block: tuple[slice, slice]) -> None:
        rows, columns = block
        visual = features[rows] @ features[columns].T
        semantic = np.ones_like(visual)  # Without nouns the kernel is the cosine.
        for prompt, (indices, values) in enumerate(nearest):
            if probabilities:
                semantic = probabilities[prompt][rows] @ probabilities[prompt][columns].T
            own, other = locks[rows.start], locks[columns.start]
            with own, other if own is not other else nullcontext():
                _offer_both(visual, semantic, rows.start, columns.start, values, indices)
        if progress:
            progress("finding neighbours", next(done), len(todo))

    with blas_threads(1):
        run_tasks(search, todo, n_threads)
    return nearest


def empty_heaps(n_images: int, q: int) -> Neighbors:
    """Return a heap of q neighbours, all missing, for every image."""
    return Neighbors(np.full((n_images, q), -1, np.int32), np.zeros((n_images, q), np.float32))


def sort_heaps(found: Neighbors) -> Neighbors:
    """Sort heaps by descending value, equal values by index."""
    order = np.lexsort((found.indices, -found.values), axis=1)
    values = np.take_along_axis(found.values, order, axis=1)
    return Neighbors(np.take_along_axis(found.indices, order, axis=1), values)
