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
    """Return an order in which most neighbours are close: products find them in the cache.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Symmetric matrix.

    Returns
    -------
    ndarray of shape (n,)
        A permutation; of a small matrix the order as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.compute.patterns import cache_order
    >>> cache_order(csr_array(np.eye(3)))
    array([0, 1, 2])
    """
    if S.shape[0] < _WORTH_ORDERING:
        return np.arange(S.shape[0])
    return np.asarray(reverse_cuthill_mckee(S, symmetric_mode=True), np.intp)


def reorder(S: csr_array, order: NDArray[np.intp]) -> csr_array:
    """Return a matrix with its rows and columns in another order.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        The matrix.
    order : ndarray of shape (n,)
        Which row and column comes first, second and so on.

    Returns
    -------
    csr_array of shape (n, n)
        With sorted indices.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.compute.patterns import reorder
    >>> reorder(csr_array(np.diag([1.0, 2.0])), np.array([1, 0])).diagonal()
    array([2., 1.])
    """
    result = csr_array(S[order][:, order])
    result.sort_indices()
    return result


def with_entries(pattern: csr_array, entries: NDArray[Any]) -> csr_array:
    """Return a matrix with other values in the places of a pattern.

    Parameters
    ----------
    pattern : csr_array of shape (n, m)
        The places.
    entries : ndarray of shape (nnz,)
        The values, row by row.

    Returns
    -------
    csr_array of shape (n, m)
        The places are not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.compute.patterns import with_entries
    >>> with_entries(csr_array(np.eye(2)), np.array([3.0, 4.0])).diagonal()
    array([3., 4.])
    """
    return csr_array((entries, pattern.indices, pattern.indptr), shape=pattern.shape)


def entries_in(
    pattern: csr_array, matrices: Sequence[csr_array], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the values of matrices in the places of a pattern.

    Parameters
    ----------
    pattern : csr_array of shape (n, m)
        The places, with sorted indices.
    matrices : sequence of csr_array of shape (n, m)
        The matrices.
    n_threads : int, default=1
        Threads to share the matrices.

    Returns
    -------
    ndarray of shape (n_matrices, nnz)
        A row for every matrix; zero where it has no entry.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.compute.patterns import entries_in
    >>> pattern, one = csr_array(np.ones((2, 2))), csr_array(np.array([[0.0, 3.0], [0.0, 0.0]]))
    >>> entries_in(pattern, [one])
    array([[0., 3., 0., 0.]])
    """
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
