"""The normalised cut of the diffused affinity, dense or implied by a sparse graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute import apply_functions, inner_products, sparse_product, tall_product
from nouncut.spectral import Eigenpairs, spectrum_floor, top_eigenpairs
from nouncut.spectral.eigen import definite_eigh

_MAX_RENEWALS = 12
# Vectors that are nearer to eigenvectors than this give the same labels.
RESIDUAL = 1e-4
# Up to here a polynomial of a few degrees is nearly f; multiplying by many vectors would cost more.
_POLYNOMIAL_REACH = 0.5
_POLYNOMIAL_ERROR: dict[Any, float] = {np.float64: 1e-5, np.float32: 1e-4}


def diffused(x: NDArray[Any], mu: float) -> NDArray[np.float64]:
    """Return what diffusion makes of an eigenvalue: ``f(x) = mu / (1 + mu - x^2)``.

    Parameters
    ----------
    x : ndarray
        Eigenvalues of a normalised graph.
    mu : float
        Pull towards the identity.

    Returns
    -------
    ndarray
        Eigenvalues of the diffused affinity.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.diffusion import diffused
    >>> diffused(np.array([1.0, 0.0]), mu=0.25)
    array([1. , 0.2])
    """
    return np.asarray(mu / (1 + mu - np.square(x)))


def dense_cut(affinity: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Return the leading eigenvectors of the normalised affinity between different images.

    Parameters
    ----------
    affinity : ndarray of shape (n, n)
        Symmetric affinity; its diagonal is dropped.
    k : int
        How many vectors.

    Returns
    -------
    ndarray of shape (n, k)
        Orthonormal eigenvectors of ``D^-1/2 A D^-1/2``, as columns.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.diffusion import dense_cut
    >>> np.abs(dense_cut(np.ones((4, 4)), 1)).ravel()
    array([0.5, 0.5, 0.5, 0.5])
    """
    between = affinity.copy()
    np.fill_diagonal(between, 0)
    roots = _inverse_roots(between.sum(axis=1))
    between *= roots[:, None]
    between *= roots
    return top_eigenpairs(between, k).vectors


def implied_cut(
    graph: csr_array, eigenpairs: Eigenpairs, k: int, mu: float, n_threads: int = 1
) -> NDArray[np.float64]:
    """Return what `dense_cut` would for the affinity ``f(S)``, without forming it.

    The wanted vectors lie almost in the span of ``D^-1/2 x`` for the leading eigenvectors x of
    the graph, where D holds the degrees of the affinity; Rayleigh-Ritz finds them there, and the
    span is renewed by subspace iteration until they have settled.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Normalised graph S.
    eigenpairs : Eigenpairs
        Its leading eigenpairs, some more than k.
    k : int
        How many vectors.
    mu : float
        Pull towards the identity.
    n_threads : int, default=1
        Threads for the sparse products.

    Returns
    -------
    ndarray of shape (n, k)
        Orthonormal vectors, as columns.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.diffusion import implied_cut
    >>> from nouncut.spectral import top_eigenpairs
    >>> ring = csr_array((np.eye(4, k=1) + np.eye(4, k=-1) + np.eye(4)[::-1]) / 2)
    >>> implied_cut(ring, top_eigenpairs(ring, 3), 1, mu=0.1).shape
    (4, 1)
    """
    n_exact = max(1, int(np.sum(eigenpairs.values[:k] > _POLYNOMIAL_REACH)))
    diffuse = partial(_diffuse, graph, eigenpairs, n_exact, mu, spectrum_floor(graph), n_threads)
    dtype = eigenpairs.vectors.dtype
    diagonal = _diffused_diagonal(graph, eigenpairs, mu)
    row_sums = diffuse(np.ones((graph.shape[0], 1), dtype)).ravel()
    roots = _inverse_roots(row_sums - diagonal)
    own = (diagonal * roots**2).astype(dtype)[:, None]
    roots = roots.astype(dtype)[:, None]
    block = roots * eigenpairs.vectors
    for _ in range(_MAX_RENEWALS):
        block /= np.sqrt(np.einsum("ij,ij->j", block, block))
        image = diffuse(roots * block)
        image *= roots
        image -= own * block
        inner = inner_products(block, image, n_threads, multiply_in=dtype.type)
        overlap = inner_products(block, n_threads=n_threads)
        values, rotation = definite_eigh((inner + inner.T) / 2, overlap)
        vectors = tall_product(block, rotation[:, :k], n_threads)
        # Along the Ritz vectors: columns as they come would all turn to the leading one.
        block = tall_product(image, rotation, n_threads, out=image)
        error = block[:, :k] - vectors * values[:k].astype(dtype)
        # Without a gap after the k-th the last vectors hardly settle; labels depend on them little.
        if np.einsum("ij,ij->", error, error, dtype=np.float64) < k * RESIDUAL**2:
            break
    return vectors


def _diffuse(
    graph: csr_array,
    eigenpairs: Eigenpairs,
    k: int,
    mu: float,
    lowest: float,
    n_threads: int,
    block: NDArray[Any],
) -> NDArray[Any]:
    """Return ``f(S) @ block``: exact on the k leading eigenvectors, a polynomial on the rest."""
    values, vectors = eigenpairs.values[:k], eigenpairs.vectors[:, :k]
    precision = vectors.dtype.type
    inside = inner_products(vectors, block, n_threads, multiply_in=precision)
    outside = tall_product(vectors, inside, n_threads)
    np.subtract(block, outside, out=outside)
    (spread,) = apply_functions(
        [partial(diffused, mu=mu)],
        graph,
        outside,
        (lowest, rest_ceiling(eigenpairs, k)),
        tol=_POLYNOMIAL_ERROR[precision],
        n_threads=n_threads,
    )
    spread += tall_product(vectors, diffused(values, mu)[:, None] * inside, n_threads)
    return spread


def rest_ceiling(eigenpairs: Eigenpairs, k: int) -> float:
    """Return a value that no eigenvalue after the k-th is above.

    Parameters
    ----------
    eigenpairs : Eigenpairs
        Leading eigenpairs; those after the k-th may be less accurate.
    k : int
        How many are accurate.

    Returns
    -------
    float
        The k-th eigenvalue, or a safe distance above the next where that is lower.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.diffusion.cut import rest_ceiling
    >>> from nouncut.spectral import Eigenpairs
    >>> rest_ceiling(Eigenpairs(np.array([1.0, 0.9, 0.4]), np.eye(3)), 2)
    0.5
    """
    values = eigenpairs.values
    return float(values[k - 1] if len(values) <= k else min(values[k - 1], values[k] + 0.1))


def graph_eigenvalues(
    graph: csr_array, vectors: NDArray[Any], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the Rayleigh quotients of vectors in a graph.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Normalised graph.
    vectors : ndarray of shape (n, k)
        Unit vectors, as columns.
    n_threads : int, default=1
        Threads for the sparse product.

    Returns
    -------
    ndarray of shape (k,)
        ``x^T S x`` for every vector x.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.diffusion import graph_eigenvalues
    >>> graph_eigenvalues(csr_array(np.diag([1.0, 0.5])), np.eye(2))
    array([1. , 0.5])
    """
    image = sparse_product(graph.astype(vectors.dtype), vectors, n_threads)
    return np.asarray(np.einsum("ij,ij->j", vectors, image, dtype=np.float64))


def _diffused_diagonal(graph: csr_array, eigenpairs: Eigenpairs, mu: float) -> NDArray[np.float64]:
    """Return the diagonal of ``f(S)`` to a fraction of a percent.

    Exact on the leading eigenvectors. On the rest, where eigenvalues are small and f is nearly
    linear in their squares, f of the mean square serves every image.
    """
    values, vectors = eigenpairs
    leading = np.square(vectors)
    rest = np.maximum(1 - leading.sum(axis=1), np.finfo(np.float64).tiny)
    squares = np.asarray(graph.multiply(graph).sum(axis=1)).ravel()
    mean_square = np.clip((squares - leading @ values**2) / rest, 0, 1)
    return np.asarray(leading @ diffused(values, mu) + rest * diffused(np.sqrt(mean_square), mu))


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(1 / np.sqrt(np.maximum(degrees, np.finfo(np.float64).eps)))
