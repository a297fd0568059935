"""Products of a sparse matrix with a block of vectors, on every core."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.threads import run_tasks

# Below this many multiplications a second thread costs more than it saves.
_WORTH_A_THREAD = 200_000


@njit(nogil=True, cache=True)
def _multiply_rows(
    indptr: Any, indices: Any, data: Any, X: Any, out: Any, first: int, last: int
) -> None:
    for row in range(first, last):
        for column in range(X.shape[1]):
            out[row, column] = 0
        for entry in range(indptr[row], indptr[row + 1]):
            weight = data[entry]
            source = indices[entry]
            for column in range(X.shape[1]):
                out[row, column] += weight * X[source, column]


def sparse_product(S: csr_array, X: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
    """Multiply a sparse matrix by a block of vectors.

    Every row is summed by one thread in the order of its entries, so the result is the same
    for any number of threads.

    Parameters
    ----------
    S : csr_array of shape (n, m)
        The sparse matrix.
    X : ndarray of shape (m, k)
        The vectors, as columns.
    n_threads : int, default=1
        Threads to share the rows.

    Returns
    -------
    ndarray of shape (n, k)
        ``S @ X``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.compute import sparse_product
    >>> S = csr_array(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> sparse_product(S, np.array([[1.0], [3.0]]))
    array([[6.],
           [1.]])
    """
    X = np.ascontiguousarray(X)
    out = np.empty((S.shape[0], X.shape[1]), dtype=np.result_type(S.dtype, X.dtype))
    if S.nnz * X.shape[1] < _WORTH_A_THREAD:
        n_threads = 1
    # Several parts per thread, cut at equal numbers of entries, keep all threads busy.
    cuts = np.searchsorted(S.indptr, np.linspace(0, S.nnz, 4 * n_threads + 1)[1:-1])
    bounds = [0, *cuts.tolist(), S.shape[0]]
    parts = list(pairwise(bounds))

    def multiply(part: tuple[int, int]) -> None:
        _multiply_rows(S.indptr, S.indices, S.data, X, out, *part)

    run_tasks(multiply, parts, n_threads)
    return out
