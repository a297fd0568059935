"""Products of sparse matrices with vectors, and of chosen pairs of rows, on every core."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.packing import PackedRows
from nouncut.compute.threads import run_tasks

# Below this many multiplications a second thread costs more than it saves.
_WORTH_A_THREAD = 200_000
# Columns that are worked on at a time: few enough for the rows around an image to stay in the
# cache, enough to make the looking up of a row worth while.
_PANEL_WIDTH = 128


@njit(nogil=True, cache=True)
def _weighted_sum(indices: Any, data: Any, first: int, last: int, X: Any, total: Any) -> None:
    """Write the sum of some rows of X, four at a time to pass over the total less often."""
    total[:] = 0
    fours = first + (last - first) // 4 * 4
    for entry in range(first, fours, 4):
        a, b, c, d = data[entry], data[entry + 1], data[entry + 2], data[entry + 3]
        p, q, r, s = indices[entry], indices[entry + 1], indices[entry + 2], indices[entry + 3]
        for column in range(X.shape[1]):
            total[column] += (
                a * X[p, column] + b * X[q, column] + c * X[r, column] + d * X[s, column]
            )
    for entry in range(fours, last):
        a, p = data[entry], indices[entry]
        for column in range(X.shape[1]):
            total[column] += a * X[p, column]


@njit(nogil=True, cache=True)
def _multiply_rows(
    indptr: Any, indices: Any, data: Any, X: Any, out: Any, first: int, last: int
) -> None:
    for row in range(first, last):
        _weighted_sum(indices, data, indptr[row], indptr[row + 1], X, out[row])


@njit(nogil=True, cache=True)
def _recurrence_step(
    indptr: Any, indices: Any, data: Any, now: Any, before: Any, factor: Any, centre: Any
) -> None:
    """Replace `before` by ``factor * (S - centre) @ now - before``."""
    width = now.shape[1]
    total = np.empty(width, dtype=now.dtype)
    for row in range(now.shape[0]):
        _weighted_sum(indices, data, indptr[row], indptr[row + 1], now, total)
        for column in range(width):
            product = factor * (total[column] - centre * now[row, column])
            before[row, column] = product - before[row, column]


@njit(nogil=True, cache=True)
def _add_scaled(total: Any, factor: Any, rows: Any) -> None:
    """Add ``factor * rows`` without a block for the product."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            total[row, column] += factor * rows[row, column]


@njit(nogil=True, cache=True, fastmath=True)
def _dot_pairs(indptr: Any, indices: Any, X: Any, out: Any, first: int, last: int) -> None:
    """Write the dot products of the pairs (row, index) of some rows."""
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
    """Do what `_dot_pairs` does for packed rows."""
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


def sparse_product(S: csr_array, X: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
    """Multiply a sparse matrix by a block of vectors.

    Every row is summed by one thread in the order of its entries, so the result is the same
    for any number of threads.
    """
    out = np.empty((S.shape[0], X.shape[1]), dtype=np.result_type(S.dtype, X.dtype))
    if S.nnz * X.shape[1] < _WORTH_A_THREAD:
        n_threads = 1
    if X.shape[1] >= 2 * _PANEL_WIDTH:

        def multiply_panel(columns: slice) -> None:
            panel = np.empty((S.shape[0], X[:, columns].shape[1]), dtype=out.dtype)
            source = np.ascontiguousarray(X[:, columns])
            _multiply_rows(S.indptr, S.indices, S.data, source, panel, 0, S.shape[0])
            out[:, columns] = panel

        run_tasks(multiply_panel, _panels(X.shape[1], _PANEL_WIDTH), n_threads)
        return out
    X = np.ascontiguousarray(X)

    def multiply(part: tuple[int, int]) -> None:
        _multiply_rows(S.indptr, S.indices, S.data, X, out, *part)

    run_tasks(multiply, _even_parts(S, n_threads), n_threads)
    return out


def apply_series(
    S: csr_array,
    block: NDArray[Any],
    series: NDArray[Any],
    interval: tuple[float, float],
    n_threads: int = 1,
    *,
    out: list[NDArray[Any]] | None = None,
) -> list[NDArray[Any]]:
    """Apply Chebyshev series of a symmetric matrix to a block of vectors.

    A few columns at a time go through the whole recurrence, so that they stay in the cache.
    """
    kind = block.dtype.type
    data = S.data.astype(block.dtype, copy=False)
    coefficients = np.asarray(series, dtype=block.dtype)
    centre, radius = kind(sum(interval) / 2), (interval[1] - interval[0]) / 2
    results = [np.empty_like(block) for _ in coefficients] if out is None else out

    def apply(columns: slice) -> None:
        now = block[:, columns].copy(order="C")
        totals = [c[0] * now for c in coefficients]
        before = np.zeros_like(now)
        for order in range(1, coefficients.shape[1]):
            factor = kind((1 if order == 1 else 2) / radius)
            _recurrence_step(S.indptr, S.indices, data, now, before, factor, centre)
            before, now = now, before
            for total, c in zip(totals, coefficients, strict=True):
                if c[order]:
                    _add_scaled(total, c[order], now)
        for result, total in zip(results, totals, strict=True):
            result[:, columns] = total

    width = min(_PANEL_WIDTH, -(-block.shape[1] // n_threads))
    run_tasks(apply, _panels(block.shape[1], width), n_threads)
    return results


def pair_products(
    pairs: csr_array, X: NDArray[np.float32] | PackedRows, n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the dot products of chosen pairs of rows."""
    out = np.empty(pairs.nnz, dtype=np.float32)

    def multiply(part: tuple[int, int]) -> None:
        if isinstance(X, PackedRows):
            _dot_packed_pairs(pairs.indptr, pairs.indices, *X, out, *part)
        else:
            _dot_pairs(pairs.indptr, pairs.indices, X, out, *part)

    run_tasks(multiply, _even_parts(pairs, n_threads), n_threads)
    return out


def _panels(n_columns: int, width: int) -> list[slice]:
    return [slice(first, first + width) for first in range(0, n_columns, max(1, width))]


def _even_parts(S: csr_array, n_threads: int) -> list[tuple[int, int]]:
    """Cut rows at equal numbers of entries; several parts per thread keep all threads busy."""
    cuts = np.searchsorted(S.indptr, np.linspace(0, S.nnz, 4 * n_threads + 1)[1:-1])
    return list(pairwise([0, *cuts.tolist(), S.shape[0]]))
