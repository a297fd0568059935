"""Sparse matrices on a common pattern of entries, and orders in which products are quick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nouncut.compute.threads import run_tasks

# Vectors of fewer rows fit in the cache whatever their order.
_WORTH_ORDERING = 5000


def cache_order(S: csr_array) -> NDArray[np.intp]:
    """Return an order in which most neighbours are close: products find them in the cache."""
    if S.shape[0] < _WORTH_ORDERING:
        return np.arange(S.shape[0])
    return np.asarray(reverse_cuthill_mckee(S, symmetric_mode=True), np.intp)


def reorder(S: csr_array, order: NDArray[np.intp]) -> csr_array:
    """Return a matrix with its rows and columns in another order."""
    result = csr_array(S[order][:, order])
    result.sort_indices()
    return result


def with_entries(pattern: csr_array, entries: NDArray[Any]) -> csr_array:
    """Return a matrix with other values in the places of a pattern."""
    return csr_array((entries, pattern.indices, pattern.indptr), shape=pattern.shape)


def entries_in(
    pattern: csr_array, matrices: Sequence[csr_array], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the values of matrices in the places of a pattern."""
    entries = np.zeros((len(matrices), pattern.nnz))

    def copy(number: int) -> None:
        own = matrices[number]
        own = own if own.has_sorted_indices else own.sorted_indices()
        places = pattern.indptr, pattern.indices, own.indptr, own.indices
        _copy_entries(*places, own.data, entries[number])

    run_tasks(copy, range(len(matrices)), n_threads)
    return entries


@njit(nogil=True, cache=True)
def _copy_entries(
    indptr: Any, indices: Any, own_indptr: Any, own_indices: Any, data: Any, out: Any
) -> None:
    for row in range(len(indptr) - 1):
        place = indptr[row]
        for entry in range(own_indptr[row], own_indptr[row + 1]):
            while place < indptr[row + 1] and indices[place] < own_indices[entry]:
                place += 1
            if place < indptr[row + 1] and indices[place] == own_indices[entry]:
                out[place] = data[entry]
