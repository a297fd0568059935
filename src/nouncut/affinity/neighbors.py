"""The q nearest images of every image under the kernel, without ever holding the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import combinations_with_replacement, product
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nouncut.compute import blas_threads, run_tasks

BLOCK_SIZE = 512


class Neighbors(NamedTuple):
    """The nearest images of every image, largest kernel first.

    Parameters
    ----------
    indices : ndarray of shape (n_images, q)
        Which images; -1 where fewer than q have a positive kernel.
    values : ndarray of shape (n_images, q)
        Their kernel values; 0 where there is none.
    """

    indices: NDArray[np.int32]
    values: NDArray[np.float32]


@njit(nogil=True, cache=True)
def _sift_down(values: Any, indices: Any) -> None:
    """Restore the heap below its root: the weakest neighbour, ties by larger index, on top."""
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
    """Let an image into a heap if it is nearer than the weakest one there.

    Equal values are ranked by index, so the outcome does not depend on the order of offers.
    """
    if value > values[0] or (value == values[0] and index < indices[0]):
        values[0] = value
        indices[0] = index
        _sift_down(values, indices)


@njit(nogil=True, cache=True)
def _offer_rows(visual: Any, semantic: Any, column: int, values: Any, indices: Any) -> None:
    """Offer the images of a kernel block's columns, the first being `column`, to its rows."""
    for r in range(visual.shape[0]):
        for c in range(visual.shape[1]):
            value = visual[r, c] * semantic[r, c]
            if value > 0 and value >= values[r, 0]:
                _offer(value, column + c, values[r], indices[r])


@njit(nogil=True, cache=True)
def _offer_both(
    visual: Any, semantic: Any, row: int, column: int, values: Any, indices: Any
) -> None:
    """Offer both sides of a block of the symmetric kernel to each other, self left out."""
    weakest = values[column : column + visual.shape[1], 0].copy()
    for r in range(visual.shape[0]):
        i = row + r
        for c in range(visual.shape[1] if row != column else r):
            value = visual[r, c] * semantic[r, c]
            if value > 0:
                if value >= values[i, 0]:
                    _offer(value, column + c, values[i], indices[i])
                if value >= weakest[c]:
                    _offer(value, i, values[column + c], indices[column + c])
                    weakest[c] = values[column + c, 0]


def kernel_neighbors(
    features: NDArray[Any],
    probabilities: Sequence[NDArray[Any]],
    q: int,
    *,
    queries: tuple[NDArray[Any], Sequence[NDArray[Any]]] | None = None,
    scale: float = 1.0,
    block_size: int = BLOCK_SIZE,
    n_threads: int = 1,
) -> list[Neighbors]:
    """Find the q largest kernel values of every image, for every prompt in one pass.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features.
    probabilities : sequence of ndarray of shape (n_images, n_nouns)
        Noun probabilities, one array per prompt; empty for visual proximity alone.
    q : int
        Neighbours to keep; an image is never its own neighbour.
    queries : tuple (features, probabilities), optional
        Other images whose neighbours among the first ones are wanted.
    scale : float, default=1.0
        Factor on all kernel values (``1 / tau**2``).
    block_size : int, default=512
        Side of the kernel blocks that exist at any one time.
    n_threads : int, default=1
        Threads to share the blocks.

    Returns
    -------
    list of Neighbors
        One per prompt; one in all where there are no prompts.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.affinity import kernel_neighbors
    >>> z = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> kernel_neighbors(z, [], q=1)[0].indices.ravel()
    array([1, 0, 1], dtype=int32)
    """
    n_rows = len(features if queries is None else queries[0])
    nearest = [_nobody(n_rows, q) for _ in range(max(1, len(probabilities)))]
    row_starts, column_starts = range(0, n_rows, block_size), range(0, len(features), block_size)
    if queries is None:
        blocks = list(combinations_with_replacement(row_starts, 2))
    else:
        blocks = list(product(row_starts, column_starts))
    locks = {start: Lock() for start in row_starts}

    def search(block: tuple[int, int]) -> None:
        row, column = block
        rows, columns = slice(row, row + block_size), slice(column, column + block_size)
        left, left_probabilities = (features, probabilities) if queries is None else queries
        visual = left[rows] @ features[columns].T
        # A factor of one where there are no nouns.
        semantic = np.ones_like(visual)
        for prompt, (indices, values) in enumerate(nearest):
            if probabilities:
                semantic = left_probabilities[prompt][rows] @ probabilities[prompt][columns].T
            if queries is not None:
                with locks[row]:
                    _offer_rows(visual, semantic, column, values[rows], indices[rows])
            else:
                with locks[row], locks[column] if row != column else nullcontext():
                    _offer_both(visual, semantic, row, column, values, indices)

    with blas_threads(1):
        run_tasks(search, blocks, n_threads)
    return [_strongest_first(found, scale) for found in nearest]


def _nobody(n_images: int, q: int) -> Neighbors:
    return Neighbors(np.full((n_images, q), -1, np.int32), np.zeros((n_images, q), np.float32))


def _strongest_first(found: Neighbors, scale: float) -> Neighbors:
    order = np.lexsort((found.indices, -found.values), axis=1)
    values = np.take_along_axis(found.values, order, axis=1)
    return Neighbors(np.take_along_axis(found.indices, order, axis=1), values * np.float32(scale))
