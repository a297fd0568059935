"""Inner products of chosen pairs of rows, and rows packed into half the memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.sparse import even_parts
from nouncut.compute.threads import run_tasks

_LARGEST = np.float32(65535)


class PackedRows(NamedTuple):
    """Non-negative rows as 16-bit integers; row i is ``numbers[i] * units[i]``."""

    numbers: NDArray[np.uint16]
    units: NDArray[np.float32]


def empty_packed_rows(n: int, k: int) -> PackedRows:
    """Allocate packed rows of shape (n, k)."""
    return PackedRows(np.empty((n, k), np.uint16), np.empty(n, np.float32))


def pack_rows(X: NDArray[np.float32], out: PackedRows, first: int = 0) -> None:
    """Write rows to `out` from row `first` on, exact to 1/131,070 of each row's maximum."""
    # Half precision keeps three digits, too few to rank the near images of an image.
    last = first + len(X)
    _pack(X, out.numbers[first:last], out.units[first:last])


@njit(nogil=True, cache=True)
def _pack(X: Any, numbers: Any, units: Any) -> None:
    for row in range(X.shape[0]):
        largest = np.float32(0)
        for column in range(X.shape[1]):
            largest = max(largest, X[row, column])
        units[row] = largest / _LARGEST
        factor = _LARGEST / largest if largest > 0 else np.float32(0)
        for column in range(X.shape[1]):
            numbers[row, column] = np.uint16(X[row, column] * factor + np.float32(0.5))


def pair_products(
    pairs: csr_array, X: NDArray[np.float32] | PackedRows, n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the inner products of the rows i and j of X for all entries (i, j) of `pairs`."""
    out = np.empty(pairs.nnz, dtype=np.float32)

    def multiply(part: tuple[int, int]) -> None:
        if isinstance(X, PackedRows):
            _dot_packed_pairs(pairs.indptr, pairs.indices, *X, out, *part)
        else:
            _dot_pairs(pairs.indptr, pairs.indices, X, out, *part)

    run_tasks(multiply, even_parts(pairs, n_threads), n_threads)
    return out


@njit(nogil=True, cache=True, fastmath=True)
def _dot_pairs(indptr: Any, indices: Any, X: Any, out: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            total = np.float32(0)
            for column in range(X.shape[1]):
                total += X[row, column] * X[other, column]
            out[entry] = total


@njit(nogil=True, cache=True, fastmath=True)
def _dot_packed_pairs(
    indptr: Any, indices: Any, numbers: Any, units: Any, out: Any, first: int, last: int
) -> None:
    width = numbers.shape[1]
    own = np.empty(width, dtype=np.float32)
    for row in range(first, last):
        for column in range(width):
            own[column] = units[row] * np.float32(numbers[row, column])
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            total = np.float32(0)
            for column in range(width):
                total += own[column] * np.float32(numbers[other, column])
            out[entry] = units[other] * total
