"""The q nearest images of every image under the kernel, without forming the kernel matrix.

A possible neighbour is one 64-bit key: the bits of the kernel value, then the complement of the
image's index. Keys rank by value and, among equal values, by smaller index. The q largest keys of
an image are the same in whatever order blocks are searched, and on any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.progress import Progress
from nouncut.compute.sparse import with_entries
from nouncut.compute.threads import blas_threads, run_tasks

BLOCK_SIZE = 512
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
# Only positive values count.
_SMALLEST = np.finfo(np.float32).smallest_subnormal
# If at least this share of a block may be neighbours, all of it is ranked.
_DENSE_SHARE = 1 / 16
# Rows that are ranked together.
_ROWS_AT_ONCE, _PARTNERS_AT_ONCE = 64, 256


class Neighbors(NamedTuple):
    """The nearest images of every image (n_images, q), largest kernel value first; -1 if none."""

    indices: NDArray[np.int32]
    values: NDArray[np.float32]


class Nearest(NamedTuple):
    """Keys of the nearest images found so far (n_images, q), and the values to reach (n_images,).

    The keys are in any order; missing ones are 0.
    """

    keys: NDArray[np.uint64]
    weakest: NDArray[np.float32]

    @classmethod
    def empty(cls, n_images: int, q: int) -> Nearest:
        """Return q missing neighbours for every image."""
        return cls(np.zeros((n_images, q), np.uint64), np.full(n_images, _SMALLEST))

    def of(self, images: slice) -> Nearest:
        """Return a view of some images."""
        return Nearest(self.keys[images], self.weakest[images])

    def sorted(self) -> Neighbors:
        """Return the neighbours by descending value, equal values by index."""
        keys = np.sort(self.keys, axis=1)[:, ::-1]
        values = (keys >> _HALF).astype(np.uint32).view(np.float32)
        indices = (_LOW_HALF - (keys & _LOW_HALF)).astype(np.uint32).view(np.int32)
        indices[values == 0] = -1
        return Neighbors(indices, values)


def neighbor_keys(
    values: NDArray[np.float32], images: NDArray[Any], out: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """Return the keys of images with these kernel values; values below 0 become 0."""
    # As integers, all negative floats are negative, -0.0 too.
    bits = np.maximum(values.view(np.int32), 0).view(np.uint32)
    keys = np.left_shift(bits, _HALF, out=out, dtype=np.uint64)
    keys |= _LOW_HALF - images.astype(np.uint64)
    return keys


def keep_largest(nearest: Nearest, images: Any, keys: NDArray[np.uint64]) -> None:
    """Give images the largest keys of every row of `keys`, which are reordered."""
    if not nearest.keys.shape[1]:  # A single image has no neighbours.
        return
    spare = keys.shape[1] - nearest.keys.shape[1]
    keys.partition(spare, axis=1)
    nearest.keys[images] = keys[:, spare:]
    weakest = (keys[:, spare] >> _HALF).astype(np.uint32).view(np.float32)
    nearest.weakest[images] = np.maximum(weakest, _SMALLEST)


def offer_rows(nearest: Nearest, values: NDArray[np.float32], first: int) -> None:
    """Offer the columns of a kernel block, images from `first` on, to its rows."""
    reached = values >= nearest.weakest[:, None]
    if np.count_nonzero(reached) >= _DENSE_SHARE * values.size:
        _offer_all(nearest, values, first)
        return
    hits = np.flatnonzero(reached)
    rows, columns = np.divmod(hits, values.shape[1])
    _offer_hits(nearest, rows, neighbor_keys(values.ravel()[hits], columns + first))


def _offer_both(
    own: Nearest, other: Nearest, values: NDArray[Any], starts: tuple[int, int]
) -> None:
    """Offer the rows and the columns of a symmetric kernel's block to each other."""
    reached = values >= own.weakest[:, None]
    reached |= values >= other.weakest
    if np.count_nonzero(reached) >= _DENSE_SHARE * values.size:
        _offer_all(own, values, starts[1])
        _offer_all(other, values.T, starts[0])
        return
    hits = np.flatnonzero(reached)
    rows, columns = np.divmod(hits, values.shape[1])
    found = values.ravel()[hits]
    large = np.flatnonzero(found >= own.weakest[rows])
    keys = neighbor_keys(found[large], columns[large] + starts[1])
    _offer_hits(own, rows[large], keys)
    large = np.flatnonzero(found >= other.weakest[columns])
    # Stable sorting of short integers takes linear time.
    large = large[
        np.argsort(columns[large].astype(np.min_scalar_type(len(other.keys))), kind="stable")
    ]
    keys = neighbor_keys(found[large], rows[large] + starts[0])
    _offer_hits(other, columns[large], keys)


def _offer_all(nearest: Nearest, values: NDArray[np.float32], first: int) -> None:
    n_rows, width = values.shape
    offered = np.empty((_ROWS_AT_ONCE, width + nearest.keys.shape[1]), np.uint64)
    images = np.arange(first, first + width)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
        keys = offered[: part.stop - start]
        neighbor_keys(np.ascontiguousarray(values[part]), images, out=keys[:, :width])
        keys[:, width:] = nearest.keys[part]
        keep_largest(nearest, part, keys)


def _offer_hits(nearest: Nearest, rows: NDArray[np.intp], keys: NDArray[np.uint64]) -> None:
    """Offer a few keys, given with their rows in ascending order."""
    counts = np.bincount(rows, minlength=len(nearest.keys))
    images = np.flatnonzero(counts)
    counts = counts[images]
    most = counts.max(initial=0)
    offered = np.zeros((len(images), most + nearest.keys.shape[1]), np.uint64)
    # The first key of a row has the row's first place, the others follow.
    gaps = np.arange(len(images)) * offered.shape[1] - (np.cumsum(counts) - counts)
    offered.ravel()[np.arange(len(keys)) + np.repeat(gaps, counts)] = keys
    offered[:, most:] = nearest.keys[images]
    keep_largest(nearest, images, offered)


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
        return [found.sorted() for found in nearest]
    nearest = [Nearest.empty(len(queries[0]), q) for _ in range(max(1, len(probabilities)))]

    def search(start: int) -> None:
        rows = slice(start, start + block_size)
        for column in range(0, len(features), block_size):
            columns = slice(column, column + block_size)
            visual = queries[0][rows] @ features[columns].T
            for prompt, found in enumerate(nearest):
                values = visual
                if probabilities:
                    values = queries[1][prompt][rows] @ probabilities[prompt][columns].T
                    values *= visual
                offer_rows(found.of(rows), values.astype(np.float32, copy=False), column)

    with blas_threads(1):
        run_tasks(search, range(0, len(queries[0]), block_size), n_threads)
    return [found.sorted() for found in nearest]


def all_blocks(n_images: int, block_size: int = BLOCK_SIZE) -> list[tuple[slice, slice]]:
    """Return the blocks of the kernel on and above its diagonal, the nearest to it first."""
    # If similar images are next to each other, the first blocks hold most of the near images.
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
    n_rows: int | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> list[Nearest]:
    """Find the q largest kernel values of every image in some blocks of the kernel.

    With `n_rows`, only the first images look for neighbours, among all; the rows of a block are
    then among them.
    """
    n_rows = len(features) if n_rows is None else n_rows
    nearest = [Nearest.empty(n_rows, q) for _ in range(max(1, len(probabilities)))]
    todo = list(blocks)
    locks = {part.start: Lock() for block in todo for part in block}
    done = count(1)

    def search(block: tuple[slice, slice]) -> None:
        rows, columns = block
        visual = features[rows] @ features[columns].T
        for prompt, found in enumerate(nearest):
            values = visual  # Without nouns the kernel is the cosine.
            if probabilities:
                values = probabilities[prompt][rows] @ probabilities[prompt][columns].T
                values *= visual
            values = values.astype(np.float32, copy=False)
            with locks[rows.start]:
                if rows == columns:
                    np.fill_diagonal(values, 0)
                    offer_rows(found.of(rows), values, rows.start)
                    continue
                if columns.start >= n_rows:
                    offer_rows(found.of(rows), values, columns.start)
                    continue
                with locks[columns.start]:
                    starts = rows.start, columns.start
                    _offer_both(found.of(rows), found.of(columns), values, starts)
        if progress:
            progress("finding neighbours", next(done), len(todo))

    with blas_threads(1):
        run_tasks(search, todo, n_threads)
    return nearest


def partners_of_pairs(pairs: csr_array) -> csr_array:
    """Return every image (row) with its partners (columns), and the number of each pair.

    The entries of `pairs` are above the diagonal.
    """
    numbered = with_entries(pairs, np.arange(1, pairs.nnz + 1, dtype=pairs.indices.dtype))
    partners = csr_array(numbered + numbered.T)
    partners.data -= 1
    return partners


def nearest_partners(
    partners: csr_array,
    values: NDArray[np.float32],
    names: NDArray[np.intp],
    q: int,
    n_threads: int = 1,
) -> Nearest:
    """Return the q partners of every image with the largest kernel values, one value per pair.

    Row i of `partners` is the image ``names[i]``.
    """
    indptr, lengths = partners.indptr, np.diff(partners.indptr)
    nearest = Nearest.empty(len(lengths), q)
    # Images with similar numbers of partners make a matrix without much padding.
    order = np.argsort(lengths, kind="stable")

    def rank(first: int) -> None:
        rows = order[first : first + _PARTNERS_AT_ONCE]
        places = np.arange(max(q, lengths[rows[-1]]))
        missing = places >= lengths[rows][:, None]
        at = np.where(missing, 0, indptr[rows][:, None] + places)
        offered = values[partners.data[at]]
        offered[missing] = 0
        keep_largest(nearest, names[rows], neighbor_keys(offered, names[partners.indices[at]]))

    if partners.nnz:
        run_tasks(rank, range(0, len(order), _PARTNERS_AT_ONCE), n_threads)
    return nearest
