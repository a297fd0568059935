"""The normalised cut: leading eigenvectors of a mean graph or of the diffused affinity."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, Self

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
from nouncut.compute.progress import Progress
from nouncut.compute.sparse import reorder, sparse_product, with_entries
from nouncut.method.diffusion import diffused
from nouncut.method.graphs import GraphStack, normalize_graph

CutKind = Literal["mean", "diffused"]
# More accurate eigenvectors give the same labels.
RESIDUAL = 1e-4
# Below this eigenvalue a polynomial of low degree approximates f well enough.
_POLYNOMIAL_REACH = 0.5
# Rounding alone gives an image this affinity to others.
_NO_DEGREE = 1e-6
# The diagonal is known to a fraction of a percent.
_DIAGONAL_ERROR = 1e-3
_POLYNOMIAL_ERROR: dict[Any, float] = {np.float64: 1e-7, np.float32: 1e-6}


class Cut(NamedTuple):
    """A graph with the eigenvectors that separate its clusters."""

    graph: csr_array
    eigenpairs: Eigenpairs
    spectrum: NDArray[np.float64]  # Leading eigenvalues of the graph, more than clusters.
    mean_degrees: NDArray[np.float64] | None = None  # Divided out of a mean graph, if they were.

    def in_order(self, order: NDArray[np.intp]) -> Self:
        """Return the cut with its images in another order."""
        return self._replace(
            graph=reorder(self.graph, order),
            eigenpairs=Eigenpairs(self.eigenpairs.values, self.eigenpairs.vectors[order]),
            mean_degrees=None if self.mean_degrees is None else self.mean_degrees[order],
        )


def cut_graph(
    graph: csr_array,
    k: int,
    *,
    normalize: bool = True,
    start: Eigenpairs | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Cut:
    """Cut a mean of normalised graphs into k clusters, normalised again unless told otherwise.

    The first normalisation makes dense and sparse regions comparable (the anisotropic kernel of
    diffusion maps, with exponent 1/2); the second makes the graph a random walk again.
    """
    degrees = None
    if normalize:
        graph, degrees = normalize_graph(graph)
    values, vectors = top_eigenpairs(
        graph,
        k,
        n_spare=guard_vectors(k),
        tol=RESIDUAL,
        start=start,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    return Cut(graph, Eigenpairs(values[:k], vectors[:, :k]), values, degrees)


def cut_affinity(affinity: NDArray[Any], mean: csr_array, k: int, n_threads: int = 1) -> Cut:
    """Cut a dense diffused affinity; `mean` is the graph to report."""
    vectors = dense_cut(affinity, k)
    spectrum = top_eigenpairs(
        mean, k, n_spare=guard_vectors(k), tol=RESIDUAL, random_state=0
    ).values
    return Cut(mean, Eigenpairs(_rayleigh_quotients(mean, vectors, n_threads), vectors), spectrum)


def dense_cut(affinity: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Return the k leading eigenvectors of the normalised affinity without its diagonal."""
    between = affinity.copy()
    np.fill_diagonal(between, 0)
    roots = _inverse_roots(between.sum(axis=1))
    between *= roots[:, None]
    between *= roots
    return top_eigenpairs(between, k).vectors


def cut_implied_affinity(
    stack: GraphStack,
    weights: NDArray[np.float64],
    start: Eigenpairs,
    k: int,
    mu: float,
    *,
    n_steps: int | None = None,
    random_state: np.random.RandomState,
    n_threads: int = 1,
) -> Cut:
    """Cut the diffused affinity without forming it; `start` are eigenpairs of the mean graph.

    With `n_steps`, the affinity is that after some steps of the diffusion.
    """
    mean = stack.mean(weights)
    # Diffusion is steepest at eigenvalues near one, and amplifies errors of their vectors.
    n_exact = exact_vectors(start, k)
    accurate = top_eigenpairs(
        mean,
        n_exact,
        n_spare=len(start.values) - n_exact,
        start=start,
        random_state=random_state,
        n_threads=n_threads,
    )
    vectors = implied_cut(
        stack,
        weights,
        accurate,
        k,
        mu,
        n_steps=n_steps,
        random_state=random_state,
        n_threads=n_threads,
    )
    quotients = _rayleigh_quotients(mean, vectors, n_threads)
    return Cut(mean, Eigenpairs(quotients, vectors), start.values)


def implied_cut(
    stack: GraphStack,
    weights: NDArray[np.float64],
    eigenpairs: Eigenpairs,
    k: int,
    mu: float,
    *,
    n_steps: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> NDArray[Any]:
    """Return what `dense_cut` would return for the diffused affinity, without forming it.

    ``D^-1/2 (A - diag A) D^-1/2`` has eigenvalues of both signs, most of them tiny. Filters that
    know the interval of the unwanted ones find the algebraically largest. Plain subspace iteration
    would find those of largest modulus.
    """
    dtype = eigenpairs.vectors.dtype
    affinity = _Affinity(stack, weights, eigenpairs, k, mu, n_steps, n_threads)
    diagonal = affinity.diagonal()
    row_sums = affinity(np.ones((len(diagonal), 1), dtype)).ravel()
    roots = _inverse_roots(row_sums - diagonal)
    own = (diagonal * roots**2).astype(dtype)[:, None]
    roots = roots.astype(dtype)[:, None]

    def product(block: NDArray[Any]) -> NDArray[Any]:
        image = affinity(roots * block)
        image *= roots
        image -= own * block
        return image

    # The affinity has no eigenvalue below f(0), so the rest of the diagonal bounds those of the
    # cut from below.
    smallest = diffused(np.zeros(1), mu)[0]
    lowest = float(np.max((diagonal - smallest) * roots.ravel() ** 2)) + _DIAGONAL_ERROR
    operator = implicit_operator(product, -lowest, n_threads)
    found = operator_eigenpairs(operator, roots * eigenpairs.vectors, k, random_state)
    return found.vectors[:, :k]


def exact_vectors(eigenpairs: Eigenpairs, k: int) -> int:
    """Return how many leading eigenvectors are treated exactly; a polynomial does for the rest."""
    return max(1, int(np.sum(eigenpairs.values[:k] > _POLYNOMIAL_REACH)))


def rest_ceiling(eigenpairs: Eigenpairs, k: int) -> float:
    """Return an upper bound of the eigenvalues after the k-th."""
    values = eigenpairs.values
    return float(values[k - 1] if len(values) <= k else min(values[k - 1], values[k] + 0.1))


class _Affinity:
    """The diffused affinity, as products with blocks of vectors.

    The fixed point of the diffusion is ``f(S)`` for one graph S and nearly ``f(S_bar)`` for several
    with mean S_bar. Both series begin with ``c (I + P / (1 + mu) + ...)``, where P is the square of
    S_bar in one and the mean of the graphs' squares in the other. That difference matters for small
    clusters, so the second term is the exact one.
    """

    def __init__(
        self,
        stack: GraphStack,
        weights: NDArray[np.float64],
        eigenpairs: Eigenpairs,
        k: int,
        mu: float,
        n_steps: int | None,
        n_threads: int,
    ) -> None:
        dtype = eigenpairs.vectors.dtype
        self.graph = stack.mean(weights)
        self.single = self.graph.astype(dtype)
        used = np.flatnonzero(weights)
        self.weights = weights[used]
        self.prompts = [with_entries(stack.pattern, stack.edges[b].astype(dtype)) for b in used]
        self.eigenpairs, self.n_threads = eigenpairs, n_threads
        self.diffused = partial(diffused, mu=mu, n_steps=n_steps)
        # The first step adds P to the identity, without the factor c of later ones.
        self.curvature = 1 / (1 + mu) if n_steps == 1 else mu / (1 + mu) ** 2
        n_exact = exact_vectors(eigenpairs, k)
        self.exact = Eigenpairs(eigenpairs.values[:n_exact], eigenpairs.vectors[:, :n_exact])
        self.interval = spectrum_floor(self.graph), rest_ceiling(eigenpairs, n_exact)

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
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
        """Return f without its second term, which comes from the prompts."""
        return np.asarray(self.diffused(x) - self.curvature * np.square(x))

    def diagonal(self) -> NDArray[np.float64]:
        """Return the affinity's diagonal to a fraction of a percent.

        It is exact on the leading eigenvectors. On the rest, eigenvalues are small and f is nearly
        linear in their squares, so we take f of their mean square.
        """
        values, vectors = self.eigenpairs
        leading = np.square(vectors, dtype=np.float64)
        rest = np.maximum(1 - leading.sum(axis=1), np.finfo(np.float64).tiny)
        squares = _row_squares(self.graph)
        mean_square = np.clip((squares - leading @ values**2) / rest, 0, 1)
        of_the_mean = leading @ self.diffused(values)
        of_the_mean += rest * self.diffused(np.sqrt(mean_square))
        spread = sum(w * _row_squares(p) for w, p in zip(self.weights, self.prompts, strict=True))
        return np.asarray(of_the_mean + self.curvature * (spread - squares))


def _rayleigh_quotients(
    graph: csr_array, vectors: NDArray[Any], n_threads: int
) -> NDArray[np.float64]:
    image = sparse_product(graph.astype(vectors.dtype), vectors, n_threads)
    return np.asarray(np.einsum("ij,ij->j", vectors, image, dtype=np.float64))


def _row_squares(graph: csr_array) -> NDArray[np.float64]:
    return np.asarray(graph.multiply(graph).sum(axis=1), dtype=np.float64).ravel()


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[np.float64]:
    """Return inverse square roots; zero for images whose paths all lead back to themselves."""
    roots = np.zeros(len(degrees))
    connected = degrees > _NO_DEGREE
    roots[connected] = 1 / np.sqrt(degrees[connected])
    return roots
