"""Regularized Affinity Diffusion at scale: nothing n x n is ever formed.

With one graph S the fixed point of the diffusion is ``f(S)`` with ``f(x) = mu / (1 + mu - x^2)``.
With several, ``f`` of their weighted mean ``S_bar`` is the same to a fraction of a percent, so the
diffused affinity is a function of a sparse matrix. What is left is the loss of every prompt,
``H_b = ||A||^2 - <A, S_b A S_b>`` at ``A = f(S_bar)``. Writing ``S_b = S_bar + D_b`` and
``A = c I + R`` with ``c = f(0)``, everything large becomes exact, and what must be estimated is
small:

    <A, S_b A S_b> = tr(S_bar^2 A^2) + 2 tr(S_bar A^2 D_b)
                     + c^2 ||D_b||^2 + 2 c tr(R D_b^2) + tr(R D_b R D_b)

Traces of functions of S_bar split into the leading eigenpairs, which are exact, and the rest of
the space, where random probes see only a small remainder (Hutchinson's estimator). All prompts
share the probes, so most of the noise cancels between prompts and the cost of applying the
functions does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.chebyshev import apply_functions
from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.eigen import (
    DENSE_SIZE,
    Eigenpairs,
    guard_vectors,
    spectrum_floor,
    top_eigenpairs,
)
from nouncut.compute.patterns import cache_order, entries_in, reorder, with_entries
from nouncut.compute.products import sparse_product
from nouncut.compute.progress import Progress
from nouncut.method.cut import (
    RESIDUAL,
    Cut,
    cut_mean,
    diffused,
    exact_vectors,
    graph_eigenvalues,
    implied_cut,
    rest_ceiling,
)
from nouncut.method.graphs import even_mean
from nouncut.method.prompt_weights import simplex_weights

N_PROBES = 32
# The probes tell weights no better than this: rounds that change less are not worth their time.
_WEIGHT_NOISE = 1e-3
# The next change of the weights is, relative to the last, two to six times the relative change of
# the mean graph; more where both are tiny.
_PER_SHIFT = 10
# Exact overlaps up to this number of vectors; random mixtures beyond.
_EXACT_OVERLAP, _MIXTURES = 400, 64
_VECTORS_AT_ONCE = 256


@dataclass(frozen=True)
class SpectralDiffusion:
    """What spectral diffusion found."""

    graph: csr_array
    mean_degrees: NDArray[np.float64] | None
    eigenpairs: Eigenpairs
    prompt_weights: NDArray[np.float64]
    losses: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    objective: NDArray[np.float64]
    weight_steps: NDArray[np.float64]


def spectral_diffusion(
    graphs: Sequence[csr_array],
    n_clusters: int,
    *,
    cut: Cut = "mean",
    mu: float = 0.1,
    lam: float = 10.0,
    max_iter: int = 5,
    tol: float = 1e-4,
    n_probes: int = N_PROBES,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> SpectralDiffusion:
    """Ensemble normalised graphs by Regularized Affinity Diffusion, in the eigenbasis."""
    rng = check_random_state(random_state)
    order, pattern, edges = _common_pattern(graphs, n_threads)
    settled = _settle_weights(
        pattern,
        edges,
        n_clusters,
        mu=mu,
        lam=lam,
        max_iter=max_iter,
        tol=max(tol, _WEIGHT_NOISE),
        probes=rng.choice([-1.0, 1.0], size=(pattern.shape[0], n_probes)),
        rng=rng,
        n_threads=n_threads,
        progress=progress,
    )
    graph = with_entries(pattern, settled.weights @ edges)
    if cut == "mean":
        del edges  # Which is as large as all graphs together.
        graph, degrees, spectrum, pairs = cut_mean(graph, n_clusters, settled.pairs, rng, n_threads)
    else:
        # Diffusion steepens towards an eigenvalue of one, and errors of the vectors with it.
        n_exact = exact_vectors(settled.pairs, n_clusters)
        accurate = top_eigenpairs(
            graph,
            n_exact,
            n_spare=len(settled.pairs.values) - n_exact,
            start=settled.pairs,
            random_state=rng,
            n_threads=n_threads,
        )
        vectors = implied_cut(
            pattern,
            edges,
            settled.weights,
            accurate,
            n_clusters,
            mu,
            random_state=rng,
            n_threads=n_threads,
        )
        degrees, spectrum = None, settled.pairs.values
        pairs = Eigenpairs(graph_eigenvalues(graph, vectors, n_threads), vectors)
    if progress:
        progress("cutting", 1, 1)
    back = np.argsort(order)
    graph = reorder(graph, back)
    graph.eliminate_zeros()
    return SpectralDiffusion(
        graph,
        None if degrees is None else degrees[back],
        Eigenpairs(pairs.values, pairs.vectors[back]),
        settled.weight_steps[-1],
        settled.losses,
        spectrum,
        np.array(settled.objective),
        np.array(settled.weight_steps),
    )


class _Settled(NamedTuple):
    """Weights that have settled, and the leading eigenpairs of the mean graph that they make."""

    weights: NDArray[np.float64]
    pairs: Eigenpairs
    losses: NDArray[np.float64]
    objective: list[float]
    weight_steps: list[NDArray[np.float64]]


def _settle_weights(
    pattern: csr_array,
    edges: NDArray[np.float64],
    n_clusters: int,
    *,
    mu: float,
    lam: float,
    max_iter: int,
    tol: float,
    probes: NDArray[Any],
    rng: np.random.RandomState,
    n_threads: int,
    progress: Progress | None,
) -> _Settled:
    """Find eigenpairs and weights in turn, until the weights settle."""
    weights = np.full(len(edges), 1 / len(edges))
    n_images = pattern.shape[0]
    # The whole spectrum of few images is quickly had, and nothing is left to estimate.
    n_known = n_images if n_images <= DENSE_SIZE else n_clusters
    start, next_change = None, np.inf
    objective: list[float] = []
    weight_steps: list[NDArray[np.float64]] = []
    while True:
        mean_edges = weights @ edges
        graph = with_entries(pattern, mean_edges)
        pairs = top_eigenpairs(
            graph,
            n_clusters,
            n_spare=max(guard_vectors(n_clusters), n_known - n_clusters),
            tol=RESIDUAL,
            start=start,
            random_state=rng,
            n_threads=n_threads,
            progress=progress,
        )
        if len(objective) == max_iter or next_change <= tol:
            break
        split = _split_spectrum(graph, pairs, n_known, probes, mu, n_threads)
        losses = np.empty(len(edges))
        for prompt, own in enumerate(edges):
            difference = with_entries(pattern, own - mean_edges)
            losses[prompt] = split.square - _two_sided_trace(difference, split, n_threads)
            if progress:
                progress("weighing prompts", prompt + 1, len(edges))
        before, weights = weights, simplex_weights(losses, lam)
        weight_steps.append(weights)
        penalty = mu * split.distance + lam / 2 * weights @ weights
        objective.append(float(weights @ losses + penalty))
        change = np.abs(weights - before).max()
        if change <= tol:
            weights = before  # Which made the mean graph of these eigenpairs.
            break
        shift = _relative_shift(weights - before, edges, mean_edges)
        next_change = _PER_SHIFT * shift * change
        start = pairs
    n_kept = n_clusters + guard_vectors(n_clusters)
    pairs = Eigenpairs(pairs.values[:n_kept], pairs.vectors[:, :n_kept])
    return _Settled(weights, pairs, losses, objective, weight_steps)


def _relative_shift(
    change: NDArray[np.float64], edges: NDArray[np.float64], mean_edges: NDArray[np.float64]
) -> float:
    """Return how far a change of weights moves the mean graph, relative to its size."""
    return float(np.linalg.norm(change @ edges) / np.linalg.norm(mean_edges))


def _common_pattern(
    graphs: Sequence[csr_array], n_threads: int = 1
) -> tuple[NDArray[np.intp], csr_array, NDArray[np.float64]]:
    """Return an order of the images, a graph with all edges, and every graph's weights on them."""
    union = even_mean(graphs)
    union.sort_indices()
    edges = entries_in(union, graphs, n_threads)
    order = cache_order(union)
    pattern = reorder(with_entries(union, np.arange(union.nnz)), order)
    for own in edges:
        own[:] = own[pattern.data]
    return order, pattern, edges


class _Split(NamedTuple):
    """``f(S_bar) = c I + R``, with R known on the leading vectors and on probes of the rest."""

    pairs: Eigenpairs
    floor: float  # c, what diffusion leaves of an eigenvalue of zero
    smooth: NDArray[Any]  # R on the leading vectors
    twice: NDArray[Any]  # S_bar A^2 on the leading vectors
    probes: NDArray[Any]
    smooth_probes: NDArray[Any]  # R on the probes
    twice_probes: NDArray[Any]  # S_bar A^2 on the probes
    square: float  # ||A||^2
    distance: float  # ||A - I||^2
    mean_trace: float  # tr(S_bar^2 A^2)


def _split_spectrum(
    graph: csr_array,
    eigenpairs: Eigenpairs,
    k: int,
    probes: NDArray[Any],
    mu: float,
    n_threads: int,
) -> _Split:
    pairs = Eigenpairs(eigenpairs.values[:k], eigenpairs.vectors[:, :k])
    values, vectors = pairs
    floor = float(diffused(np.zeros(1), mu)[0])

    def smooth(x: NDArray[Any]) -> NDArray[Any]:
        return diffused(x, mu) - floor

    def twice(x: NDArray[Any]) -> NDArray[Any]:
        return x * diffused(x, mu) ** 2

    probes = probes.astype(vectors.dtype)
    probes -= tall_product(vectors, inner_products(vectors, probes, n_threads), n_threads)
    if k == len(vectors):
        probes[:] = 0  # But for rounding.
    interval = spectrum_floor(graph), rest_ceiling(eigenpairs, k)
    smooth_probes, twice_probes = apply_functions(
        (smooth, twice), graph, probes, interval, n_threads=n_threads
    )
    rest = len(vectors) - len(values)
    smooth_trace = _mean_dot(probes, smooth_probes)
    square = (
        float(np.sum(diffused(values, mu) ** 2))
        + floor**2 * rest
        + 2 * floor * smooth_trace
        + _mean_dot(smooth_probes, smooth_probes)
    )
    trace = float(np.sum(diffused(values, mu))) + floor * rest + smooth_trace
    mean_trace = float(values @ twice(values)) + _mean_dot(
        sparse_product(graph.astype(probes.dtype), probes, n_threads), twice_probes
    )
    return _Split(
        pairs,
        floor,
        smooth(values),
        twice(values),
        probes,
        smooth_probes,
        twice_probes,
        square,
        square - 2 * trace + len(vectors),
        mean_trace,
    )


def _two_sided_trace(difference: csr_array, split: _Split, n_threads: int) -> float:
    """Return ``<A, S_b A S_b>`` for ``S_b = S_bar + difference``."""
    vectors, smooth = split.pairs.vectors, split.smooth
    s = split.probes.shape[1]
    narrow = difference.astype(vectors.dtype)
    image = sparse_product(narrow, np.hstack([split.probes, split.smooth_probes]), n_threads)
    on_probes, on_smooth = image[:, :s], image[:, s:]
    quotients, squares, overlap = _on_vectors(narrow, vectors, smooth, n_threads)
    linear = split.twice @ quotients + _mean_dot(split.twice_probes, on_probes)
    once_smooth = smooth @ squares + _mean_dot(on_probes, on_smooth)
    across = inner_products(vectors, image, n_threads)
    across_trace = smooth @ (across[:, s:] * across[:, :s]).sum(axis=1) / s
    pairs = inner_products(split.smooth_probes, on_probes, n_threads)
    # Two different probes, so that the square of their product is estimated without bias.
    outside = (np.sum(pairs * pairs.T) - np.sum(np.diag(pairs) ** 2)) / (s * (s - 1))
    quadratic = (
        split.floor**2 * float(np.sum(difference.data**2))
        + 2 * split.floor * once_smooth
        + (overlap + 2 * across_trace + outside)
    )
    return float(split.mean_trace + 2 * linear + quadratic)


def _on_vectors(
    difference: csr_array, vectors: NDArray[Any], smooth: NDArray[Any], n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return ``x^T D x`` and ``||D x||^2`` of the leading vectors, and ``tr(R D R D)`` on them."""
    k = vectors.shape[1]
    quotients, squares = np.empty(k), np.empty(k)
    few = k <= _EXACT_OVERLAP
    # Many vectors: random mixtures of them estimate the sum of all squared overlaps.
    overlap = 0.0
    if not few:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(k, _MIXTURES))
        mixed = tall_product(vectors, np.sqrt(smooth)[:, None] * signs, n_threads)
        mixed = sparse_product(difference, mixed, n_threads)
        overlap = np.sum(smooth @ inner_products(vectors, mixed, n_threads) ** 2) / _MIXTURES
    for first in range(0, k, _VECTORS_AT_ONCE):
        part = slice(first, first + _VECTORS_AT_ONCE)
        own = vectors[:, part]
        image = sparse_product(difference, own, n_threads)
        quotients[part] = np.einsum("ij,ij->j", own, image, dtype=np.float64)
        squares[part] = np.einsum("ij,ij->j", image, image, dtype=np.float64)
        if few:
            overlap += smooth @ inner_products(vectors, image, n_threads) ** 2 @ smooth[part]
    return quotients, squares, float(overlap)


def _mean_dot(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Return the mean inner product of corresponding columns."""
    return float(np.einsum("ij,ij->", left, right, dtype=np.float64) / left.shape[1])
