"""Sparse matrices: products with blocks of vectors, common patterns of entries, cache order.

SciPy multiplies on one thread and forms every term of a matrix polynomial in memory. These products
use all threads and keep a few columns at a time in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nouncut.compute.threads import run_tasks

# Below this many multiplications a second thread costs more than it saves.
_WORTH_A_THREAD = 200_000
# Columns multiplied at once: few enough for the rows around an image to stay in the cache, enough
# to make looking up a row worthwhile.
_PANEL_WIDTH = 128
# Vectors with fewer rows fit in the cache in any order.
_WORTH_ORDERING = 5000


def sparse_product(S: csr_array, X: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
    """Return ``S @ X`` for a dense block X; the same to the last bit for any `n_threads`."""
    # One thread sums a row, in the order of its entries.
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

    run_tasks(multiply, even_parts(S, n_threads), n_threads)
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
    """Apply Chebyshev series of a symmetric matrix to a block, one result per series."""
    kind = block.dtype.type
    data = S.data.astype(block.dtype, copy=False)
    coefficients = np.asarray(series, dtype=block.dtype)
    centre, radius = kind(sum(interval) / 2), (interval[1] - interval[0]) / 2
    results = [np.empty_like(block) for _ in coefficients] if out is None else out

    def apply(columns: slice) -> None:
        # These columns stay in the cache for the whole recurrence.
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


def even_parts(S: csr_array, n_threads: int) -> list[tuple[int, int]]:
    """Cut rows at equal numbers of entries; several parts per thread keep all threads busy."""
    cuts = np.searchsorted(S.indptr, np.linspace(0, S.nnz, 4 * n_threads + 1)[1:-1])
    return list(pairwise([0, *cuts.tolist(), S.shape[0]]))


def cache_order(S: csr_array) -> NDArray[np.intp]:
    """Return an order of rows that brings neighbours close together, for products in the cache."""
    if S.shape[0] < _WORTH_ORDERING:
        return np.arange(S.shape[0])
    return np.asarray(reverse_cuthill_mckee(S, symmetric_mode=True), np.intp)


def reorder(S: csr_array, order: NDArray[np.intp]) -> csr_array:
    """Permute the rows and columns of a symmetric matrix."""
    result = csr_array(S[order][:, order])
    result.sort_indices()
    return result


def with_entries(pattern: csr_array, entries: NDArray[Any]) -> csr_array:
    """Return the matrix with these values at the non-zeros of a pattern."""
    return csr_array((entries, pattern.indices, pattern.indptr), shape=pattern.shape)


def entries_in(
    pattern: csr_array, matrices: Sequence[csr_array], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the values of matrices at the non-zeros of a pattern, shape (n_matrices, nnz)."""
    entries = np.zeros((len(matrices), pattern.nnz))

    def copy(number: int) -> None:
        own = matrices[number]
        own = own if own.has_sorted_indices else own.sorted_indices()
        _copy_entries(
            pattern.indptr, pattern.indices, own.indptr, own.indices, own.data, entries[number]
        )

    run_tasks(copy, range(len(matrices)), n_threads)
    return entries


def _panels(n_columns: int, width: int) -> list[slice]:
    return [slice(first, first + width) for first in range(0, n_columns, max(1, width))]


@njit(nogil=True, cache=True)
def _weighted_sum(indices: Any, data: Any, first: int, last: int, X: Any, total: Any) -> None:
    """Write the weighted sum of rows of X to `total`, four rows per pass."""
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
    """Add ``factor * rows`` without allocating the product."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            total[row, column] += factor * rows[row, column]


@njit(nogil=True, cache=True)
def _copy_entries(
    indptr: Any, indices: Any, own_indptr: Any, own_indices: Any, data: Any, out: Any
) -> None:
    for row in range(len(indptr) - 1):
        at = indptr[row]
        for entry in range(own_indptr[row], own_indptr[row + 1]):
            while at < indptr[row + 1] and indices[at] < own_indices[entry]:
                at += 1
            if at < indptr[row + 1] and indices[at] == own_indices[entry]:
                out[at] = data[entry]
