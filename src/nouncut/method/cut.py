"""The normalised cut of the diffused affinity, dense or implied by a sparse graph."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.chebyshev import apply_functions
from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.eigen import (
    Eigenpairs,
    guard_vectors,
    implicit_operator,
    operator_eigenpairs,
    spectrum_floor,
    top_eigenpairs,
)
from nouncut.compute.patterns import with_entries
from nouncut.compute.products import sparse_product
from nouncut.compute.progress import Progress
from nouncut.method.graphs import normalize_graph

Cut = Literal["mean", "diffused"]

# Vectors that are nearer to eigenvectors than this give the same labels.
RESIDUAL = 1e-4
# Up to here a polynomial of a few degrees is nearly f; multiplying by many vectors would cost more.
_POLYNOMIAL_REACH = 0.5
# Rounding alone gives an image so much affinity to others.
_NO_DEGREE = 1e-6
# The diagonal is known to a fraction of a percent.
_DIAGONAL_ERROR = 1e-3
_POLYNOMIAL_ERROR: dict[Any, float] = {np.float64: 1e-7, np.float32: 1e-6}


def diffused(x: NDArray[Any], mu: float) -> NDArray[np.float64]:
    """Return what diffusion makes of an eigenvalue: ``f(x) = mu / (1 + mu - x^2)``."""
    # Rounding must not carry an eigenvalue of one across the pole.
    return np.asarray(mu / (1 + mu - np.minimum(np.square(x), 1)))


def dense_cut(affinity: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Return the leading eigenvectors of the normalised affinity between different images."""
    between = affinity.copy()
    np.fill_diagonal(between, 0)
    roots = _inverse_roots(between.sum(axis=1))
    between *= roots[:, None]
    between *= roots
    return top_eigenpairs(between, k).vectors


class MeanCut(NamedTuple):
    """A mean graph, normalised again."""

    graph: csr_array
    degrees: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    eigenpairs: Eigenpairs


def cut_mean(
    graph: csr_array,
    k: int,
    start: Eigenpairs | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> MeanCut:
    """Normalise the mean of normalised graphs again and return its leading eigenpairs.

    The first normalisation makes images of dense and sparse regions comparable (the anisotropic
    kernel of diffusion maps, with exponent 1/2 [1]_), the second makes what is left a random walk.
    """
    normalized, degrees = normalize_graph(graph)
    values, vectors = top_eigenpairs(
        normalized,
        k,
        n_spare=guard_vectors(k),
        tol=RESIDUAL,
        start=start,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    return MeanCut(normalized, degrees, values, Eigenpairs(values[:k], vectors[:, :k]))


def implied_cut(
    pattern: csr_array,
    edges: NDArray[np.float64],
    weights: NDArray[np.float64],
    eigenpairs: Eigenpairs,
    k: int,
    mu: float,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> NDArray[Any]:
    """Return what `dense_cut` would for the diffused affinity, without forming it.

    What is cut, ``D^-1/2 (A - diag A) D^-1/2``, has eigenvalues of both signs, most of them tiny.
    Filters that know the interval of the unwanted ones find the algebraically largest, whatever
    the sign of the rest; plain subspace iteration would turn to those of largest modulus.
    """
    dtype = eigenpairs.vectors.dtype
    affinity = _Affinity(pattern, edges, weights, eigenpairs, k, mu, n_threads)
    diagonal = affinity.diagonal()
    row_sums = affinity(np.ones((pattern.shape[0], 1), dtype)).ravel()
    roots = _inverse_roots(row_sums - diagonal)
    own = (diagonal * roots**2).astype(dtype)[:, None]
    roots = roots.astype(dtype)[:, None]

    def product(block: NDArray[Any]) -> NDArray[Any]:
        image = affinity(roots * block)
        image *= roots
        image -= own * block
        return image

    # No eigenvalue of the affinity is below f(0), so the rest of the diagonal bounds those of the
    # cut from below.
    smallest = diffused(np.zeros(1), mu)[0]
    lowest = float(np.max((diagonal - smallest) * roots.ravel() ** 2)) + _DIAGONAL_ERROR
    operator = implicit_operator(product, -lowest)
    start = roots * eigenpairs.vectors
    found = operator_eigenpairs(operator, start, k, random_state=random_state, n_threads=n_threads)
    return found.vectors[:, :k]


def exact_vectors(eigenpairs: Eigenpairs, k: int) -> int:
    """Return how many leading eigenvectors are treated exactly; a polynomial does for the rest."""
    return max(1, int(np.sum(eigenpairs.values[:k] > _POLYNOMIAL_REACH)))


class _Affinity:
    """The diffused affinity as a function of blocks of vectors.

    With one graph the fixed point of the diffusion is ``f(S)``, with several nearly f of the mean
    graph S_bar: the series of both begin with ``c (I + P / (1 + mu) + ...)`` where P is the square
    of S_bar in the one and the mean of the graphs' squares in the other. That difference decides
    where clusters are small, so the second term is taken as it is.
    """

    def __init__(
        self,
        pattern: csr_array,
        edges: NDArray[np.float64],
        weights: NDArray[np.float64],
        eigenpairs: Eigenpairs,
        k: int,
        mu: float,
        n_threads: int,
    ) -> None:
        dtype = eigenpairs.vectors.dtype
        self.graph = with_entries(pattern, (weights @ edges))
        self.single = self.graph.astype(dtype)
        used = np.flatnonzero(weights)
        self.weights = weights[used]
        self.prompts = [with_entries(pattern, edges[b].astype(dtype)) for b in used]
        self.eigenpairs, self.mu, self.n_threads = eigenpairs, mu, n_threads
        self.curvature = mu / (1 + mu) ** 2
        n_exact = exact_vectors(eigenpairs, k)
        self.exact = Eigenpairs(eigenpairs.values[:n_exact], eigenpairs.vectors[:, :n_exact])
        self.interval = spectrum_floor(self.graph), rest_ceiling(eigenpairs, n_exact)

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Return the product of the affinity and a block of vectors."""
        values, vectors = self.exact
        inside = inner_products(vectors, block, self.n_threads, multiply_in=vectors.dtype.type)
        outside = tall_product(vectors, inside, self.n_threads)
        np.subtract(block, outside, out=outside)
        (result,) = apply_functions(
            [self._of_the_mean],
            self.single,
            outside,
            self.interval,
            tol=_POLYNOMIAL_ERROR[vectors.dtype.type],
            n_threads=self.n_threads,
        )
        result += tall_product(vectors, self._of_the_mean(values)[:, None] * inside, self.n_threads)
        for weight, prompt in zip(self.weights, self.prompts, strict=True):
            once = sparse_product(prompt, block, self.n_threads)
            twice = sparse_product(prompt, once, self.n_threads)
            twice *= vectors.dtype.type(weight * self.curvature)
            result += twice
        return result

    def _of_the_mean(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Return f without its second term, which is the prompts'."""
        return np.asarray(diffused(x, self.mu) - self.curvature * np.square(x))

    def diagonal(self) -> NDArray[np.float64]:
        """Return the affinity's diagonal to a fraction of a percent.

        Exact on the leading eigenvectors. On the rest, where eigenvalues are small and f is nearly
        linear in their squares, f of the mean square serves every image.
        """
        values, vectors = self.eigenpairs
        leading = np.square(vectors, dtype=np.float64)
        rest = np.maximum(1 - leading.sum(axis=1), np.finfo(np.float64).tiny)
        squares = _row_squares(self.graph)
        mean_square = np.clip((squares - leading @ values**2) / rest, 0, 1)
        of_the_mean = leading @ diffused(values, self.mu)
        of_the_mean += rest * diffused(np.sqrt(mean_square), self.mu)
        spread = sum(w * _row_squares(p) for w, p in zip(self.weights, self.prompts, strict=True))
        return np.asarray(of_the_mean + self.curvature * (spread - squares))


def rest_ceiling(eigenpairs: Eigenpairs, k: int) -> float:
    """Return a value that no eigenvalue after the k-th is above."""
    values = eigenpairs.values
    return float(values[k - 1] if len(values) <= k else min(values[k - 1], values[k] + 0.1))


def graph_eigenvalues(
    graph: csr_array, vectors: NDArray[Any], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the Rayleigh quotients of vectors in a graph."""
    image = sparse_product(graph.astype(vectors.dtype), vectors, n_threads)
    return np.asarray(np.einsum("ij,ij->j", vectors, image, dtype=np.float64))


def _row_squares(graph: csr_array) -> NDArray[np.float64]:
    return np.asarray(graph.multiply(graph).sum(axis=1), dtype=np.float64).ravel()


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[np.float64]:
    """Return the inverse square roots; zero for images whose paths all lead back to themselves."""
    roots = np.zeros(len(degrees))
    connected = degrees > _NO_DEGREE
    roots[connected] = 1 / np.sqrt(degrees[connected])
    return roots
