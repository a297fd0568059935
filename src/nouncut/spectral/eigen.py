"""Leading eigenvectors of a normalised graph."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nouncut.compute import sparse_product

# Up to here a dense solve is the quickest, and it cannot miss a vector.
_DENSE_SIZE = 400
_FILTER_DEGREE = 12
_MAX_ROUNDS = 60


class Eigenpairs(NamedTuple):
    """Leading eigenvalues and eigenvectors.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Eigenvalues, largest first.
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors, as columns.
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


def top_eigenpairs(
    S: csr_array | NDArray[Any],
    k: int,
    *,
    n_spare: int = 0,
    tol: float = 1e-6,
    start: NDArray[Any] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> Eigenpairs:
    """Return the k algebraically largest eigenvalues of a symmetric matrix with their vectors.

    Small matrices are solved densely. Larger ones by subspace iteration with a Chebyshev filter:
    a block of vectors finds repeated and crowded eigenvalues together, which single-vector
    Lanczos methods (ARPACK) skip while their residuals look fine.

    Parameters
    ----------
    S : csr_array or ndarray of shape (n, n)
        Symmetric matrix with eigenvalues between -1 and 1; an ndarray is solved densely.
    k : int
        How many, at most n.
    n_spare : int, default=0
        Further pairs to return after these, as they come: theirs may be less accurate.
    tol : float, default=1e-6
        Largest residual ``||S x - value x||`` of a returned pair.
    start : ndarray of shape (n, m), optional
        Vectors near the wanted ones, from a similar matrix.
    random_state : int, RandomState instance or None, default=None
        Seed of the starting block.
    n_threads : int, default=1
        Threads for the sparse products.

    Returns
    -------
    Eigenpairs
        Values in descending order and their vectors; fewer than ``k + n_spare`` where the matrix
        is smaller.

    Warns
    -----
    ConvergenceWarning
        Where a residual is still larger than `tol` at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.spectral import top_eigenpairs
    >>> top_eigenpairs(csr_array(np.diag([0.5, 1.0, 0.2])), 2).values
    array([1. , 0.5])
    """
    n = S.shape[0]
    wanted = min(n, k + n_spare)
    # Guard vectors carry the eigenvalues that crowd below the k-th.
    size = max(wanted, k + max(16, k // 5))
    if isinstance(S, np.ndarray) or n <= max(_DENSE_SIZE, 3 * size):
        dense = S if isinstance(S, np.ndarray) else S.toarray()
        values, vectors = eigh(dense, subset_by_index=[n - wanted, n - 1])
        return Eigenpairs(values[::-1].copy(), np.ascontiguousarray(vectors[:, ::-1]))
    rng = check_random_state(random_state)
    block = rng.normal(size=(n, size))
    if start is not None:
        block[:, : start.shape[1]] = start[:, :size]
    values, vectors = _filtered_iteration(S, block, k, tol, n_threads)
    return Eigenpairs(values[:wanted].copy(), np.ascontiguousarray(vectors[:, :wanted]))


def _filtered_iteration(
    S: csr_array, block: NDArray[Any], k: int, tol: float, n_threads: int
) -> Eigenpairs:
    """Alternate between damping the unwanted part of the spectrum and Rayleigh-Ritz."""
    lowest = spectrum_floor(S)
    values, block, residual = _rayleigh_ritz(S, block, k, n_threads)
    for _ in range(_MAX_ROUNDS):
        if residual <= tol:
            break
        block = _chebyshev_filter(S, block, lowest, values[-1], n_threads)
        values, block, residual = _rayleigh_ritz(S, block, k, n_threads)
    else:
        warnings.warn(
            f"The {k} leading eigenvectors have residuals up to {residual:.1e}, more than "
            f"{tol:.1e}: clusters may be less stable than they could be.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Eigenpairs(values, block)


def spectrum_floor(S: csr_array) -> float:
    """Return a value that no eigenvalue of a normalised graph is below.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Symmetric matrix with eigenvalues between -1 and 1.

    Returns
    -------
    float
        At least -1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.spectral import spectrum_floor
    >>> -0.7 < spectrum_floor(csr_array(np.diag([1.0, 0.3, -0.5, 0.2]))) <= -0.5
    True
    """
    if S.shape[0] <= _DENSE_SIZE:
        lowest = eigh(S.toarray(), subset_by_index=[0, 0], eigvals_only=True)[0]
    else:
        start = np.cos(np.arange(S.shape[0]))
        lowest = eigsh(S, 1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)[0]
    return max(-1.0, float(lowest) - 0.05)


def _rayleigh_ritz(
    S: csr_array, block: NDArray[Any], k: int, n_threads: int
) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Return the Ritz pairs of a block, largest first, and the worst residual of the first k."""
    basis = np.linalg.qr(block)[0]
    image = sparse_product(S, basis, n_threads)
    values, rotation = np.linalg.eigh(basis.T @ image)
    values, rotation = values[::-1], rotation[:, ::-1]
    vectors = basis @ rotation
    error = image @ rotation[:, :k] - vectors[:, :k] * values[:k]
    return values, vectors, float(np.sqrt(np.einsum("ij,ij->j", error, error).max()))


def _chebyshev_filter(
    S: csr_array, block: NDArray[Any], low: float, high: float, n_threads: int
) -> NDArray[Any]:
    """Amplify the eigenvectors above `high` and damp those between `low` and `high`."""
    high = min(max(high, low + 1e-3), 1 - 1e-3)
    centre, radius = (high + low) / 2, (high - low) / 2
    before, now = block, (sparse_product(S, block, n_threads) - centre * block) / radius
    for _ in range(_FILTER_DEGREE - 1):
        product = sparse_product(S, now, n_threads)
        product -= centre * now
        product *= 2 / radius
        product -= before
        before, now = now, product
    return now
