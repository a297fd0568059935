"""Inner products of chosen pairs of rows, and rows packed into half the memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.threads import blas_threads, run_tasks

_LARGEST = np.float32(65535)
# Rows are packed in parts that stay in the cache.
_NUMBERS_AT_ONCE = 1 << 16
# Partners of a row that are multiplied together; numbers and runs that are gathered at once.
_RUN = 16
_GATHERED, _MOST_RUNS = 1 << 19, 64
_RUNS_PER_TASK = 4096


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
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, len(X), at_once):
        rows = X[start : start + at_once]
        part = slice(first + start, first + start + len(rows))
        largest = rows.max(axis=1, initial=0)
        out.units[part] = largest / _LARGEST
        factors = _LARGEST / np.where(largest > 0, largest, 1)
        scaled = rows * factors[:, None]
        scaled += np.float32(0.5)
        out.numbers[part] = scaled


def pair_products(
    pairs: csr_array, X: NDArray[np.float32] | PackedRows, n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the inner products of the rows i and j of X for all entries (i, j) of `pairs`."""
    numbers = X.numbers if isinstance(X, PackedRows) else X
    out = np.empty(pairs.nnz, dtype=np.float32)
    rows, first, last = _runs(pairs.indptr)
    at_once = int(np.clip(_GATHERED // (_RUN * max(1, numbers.shape[1])), 1, _MOST_RUNS))

    def multiply(part: slice) -> None:
        # Buffers that are used again and again stay in the cache.
        gather, gather_own = _Gather(numbers, at_once * _RUN), _Gather(numbers, at_once)
        for start in range(part.start, min(part.stop, len(rows)), at_once):
            runs = slice(start, min(start + at_once, part.stop))
            # The last run of a row is filled up with its last partner.
            entries = np.minimum(first[runs, None] + np.arange(_RUN), last[runs, None])
            own = gather_own(rows[runs])
            partners = gather(pairs.indices[entries].ravel())
            partners = partners.reshape(len(own), _RUN, numbers.shape[1])
            out[entries] = np.matmul(partners, own[:, :, None])[:, :, 0]

    with blas_threads(1):
        parts = range(0, len(rows), _RUNS_PER_TASK)
        run_tasks(multiply, [slice(a, a + _RUNS_PER_TASK) for a in parts], n_threads)
    if isinstance(X, PackedRows):
        out *= X.units[pairs.indices]
        out *= np.repeat(X.units, np.diff(pairs.indptr))
    return out


def _runs(indptr: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the row, the first entry and the row's last entry of every run of entries."""
    n_runs = -(-np.diff(indptr) // _RUN)
    rows = np.repeat(np.arange(len(n_runs)), n_runs)
    number_in_row = np.arange(len(rows)) - np.repeat(np.cumsum(n_runs) - n_runs, n_runs)
    return rows, indptr[rows] + _RUN * number_in_row, indptr[rows + 1] - 1


class _Gather:
    """Copies rows of a matrix to single precision, always in the same memory."""

    def __init__(self, X: NDArray[Any], most: int) -> None:
        self._X = X
        self._rows = np.empty((most, X.shape[1]), X.dtype)
        is_single = X.dtype == np.float32
        self._single = self._rows if is_single else np.empty(self._rows.shape, np.float32)

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        # Without "clip" NumPy would buffer the output.
        found = np.take(self._X, rows, axis=0, out=self._rows[: len(rows)], mode="clip")
        single = self._single[: len(rows)]
        if single.dtype != found.dtype:
            single[:] = found
        return single
