"""Sparse matrices: products with blocks of vectors, common patterns of entries, cache order.

SciPy multiplies on one thread. These products use all threads, a panel of columns on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nouncut.compute.threads import run_tasks

# Below this many multiplications a second thread costs more than it saves.
_WORTH_A_THREAD = 200_000
# Columns multiplied at once: few enough for the rows around an image to stay in the cache, enough
# to make looking up a row worthwhile.
_PANEL_WIDTH = 128
# SciPy multiplies four columns at once and the rest one by one. It is quicker with zeros in place
# of the rest, and with single vectors instead of fewer than four.
_LANES = 4
# Vectors with fewer rows fit in the cache in any order.
_WORTH_ORDERING = 5000


def sparse_product(S: csr_array, X: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
    """Return ``S @ X`` for a dense block X; the same to the last bit for any `n_threads`."""
    # A sum has the order of the row's entries in any panel.
    if S.nnz * X.shape[1] < _WORTH_A_THREAD:
        n_threads = 1
    panels = _panels(X.shape[1], n_threads)
    if len(panels) == 1 and X.shape[1] % _LANES == 0:
        return np.asarray(S @ X)  # Nothing to fill up, and no copies.
    out = np.empty((S.shape[0], X.shape[1]), dtype=np.result_type(S.dtype, X.dtype))

    def multiply(columns: slice) -> None:
        _write_panel(out, columns, S @ _read_panel(X, columns))

    run_tasks(multiply, panels, n_threads)
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
    coefficients = np.asarray(series, dtype=block.dtype)
    doubled = _doubled_on_unit_interval(S.astype(block.dtype, copy=False), interval)
    results = [np.empty_like(block) for _ in coefficients] if out is None else out
    if S.nnz * block.size * coefficients.shape[1] < _WORTH_A_THREAD * len(block):
        n_threads = 1

    def apply(columns: slice) -> None:
        # These columns stay in the cache for the whole recurrence.
        now = _read_panel(block, columns)
        totals = [c[0] * now for c in coefficients]
        before, term = now, np.empty_like(now)
        for order in range(1, coefficients.shape[1]):
            product = doubled @ now
            if order == 1:
                product /= 2
            else:
                product -= before
            before, now = now, product
            for total, c in zip(totals, coefficients, strict=True):
                if c[order]:
                    total += np.multiply(c[order], now, out=term)
        for result, total in zip(results, totals, strict=True):
            _write_panel(result, columns, total)

    run_tasks(apply, _panels(block.shape[1], n_threads), n_threads)
    return results


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
        places = _shared_entries(pattern, own)
        # Most matrices have no entries outside of the pattern.
        inside = slice(None) if len(places) == own.nnz else _shared_entries(own, pattern)
        entries[number, places] = own.data[inside]

    run_tasks(copy, range(len(matrices)), n_threads)
    return entries


def _shared_entries(S: csr_array, other: csr_array) -> NDArray[np.intp]:
    """Return the numbers of the entries of S that another matrix has too, in their order."""
    kind = S.indptr.dtype
    numbered = with_entries(S, np.arange(1, S.nnz + 1, dtype=kind))
    shared = numbered.multiply(with_entries(other, np.ones(other.nnz, kind)))
    return np.asarray(shared.data - 1)


def _doubled_on_unit_interval(S: csr_array, interval: tuple[float, float]) -> csr_array:
    """Return twice S, shifted and scaled so that an interval becomes [-1, 1]."""
    low, high = interval
    shift = eye_array(S.shape[0], dtype=S.dtype, format="csr") * S.dtype.type((low + high) / 2)
    moved = csr_array(S - shift)
    moved.data *= S.dtype.type(4 / (high - low))
    return moved


def _panels(n_columns: int, n_threads: int) -> list[slice]:
    width = 1
    if n_columns > _LANES:
        share = -(-n_columns // n_threads)
        width = min(_PANEL_WIDTH, -(-share // _LANES) * _LANES)
    return [slice(first, first + width) for first in range(0, n_columns, width)]


def _read_panel(X: NDArray[Any], columns: slice) -> NDArray[Any]:
    """Copy columns of a block; several of them are filled up with zeros."""
    part = X[:, columns]
    width = part.shape[1]
    panel = np.zeros((len(X), width if width == 1 else -(-width // _LANES) * _LANES), X.dtype)
    panel[:, :width] = part
    return panel


def _write_panel(X: NDArray[Any], columns: slice, panel: NDArray[Any]) -> None:
    part = X[:, columns]
    part[:] = panel[:, : part.shape[1]]
