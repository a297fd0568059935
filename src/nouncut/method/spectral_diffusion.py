"""Regularized Affinity Diffusion in the eigenbasis: no n x n matrix is ever formed.

For one graph S the fixed point of the diffusion is ``f(S)`` with ``f(x) = mu / (1 + mu - x^2)``.
For several, ``f`` of their weighted mean ``S_bar`` is the same to a fraction of a percent, so the
diffused affinity is a function of a sparse matrix. What remains is the loss of every prompt,
``H_b = ||A||^2 - <A, S_b A S_b>`` at ``A = f(S_bar)``. With ``S_b = S_bar + D_b`` and
``A = c I + R``, ``c = f(0)``, all large terms are exact and only small ones are estimated:

    <A, S_b A S_b> = tr(S_bar^2 A^2) + 2 tr(S_bar A^2 D_b)
                     + c^2 ||D_b||^2 + 2 c tr(R D_b^2) + tr(R D_b R D_b)

Traces of functions of S_bar are exact on the leading eigenvectors. On the rest of the space random
probes estimate a small remainder (Hutchinson's estimator). All prompts share the probes, so most of
the noise cancels between prompts, and the functions are applied once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from nouncut.compute.progress import Progress
from nouncut.compute.sparse import sparse_product, with_entries
from nouncut.method.cut import (
    RESIDUAL,
    Cut,
    CutKind,
    cut_graph,
    cut_implied_affinity,
    rest_ceiling,
)
from nouncut.method.diffusion import (
    PUBLISHED,
    DiffusionOptions,
    PromptWeights,
    diffused,
    simplex_weights,
)
from nouncut.method.graphs import GraphStack, stack_graphs

N_PROBES = 32
# Estimated weights are no more accurate than this; smaller changes are not worth another round.
_WEIGHT_NOISE = 1e-3
# The ratio of the next change of the weights to the last one is two to six times the relative
# change of the mean graph, and more if both are tiny.
_PER_SHIFT = 10
# Exact overlaps up to this number of vectors; random mixtures beyond.
_EXACT_OVERLAP, _MIXTURES = 400, 64
_VECTORS_AT_ONCE = 256


def spectral_diffusion(
    graphs: Sequence[csr_array],
    n_clusters: int,
    options: DiffusionOptions = PUBLISHED,
    *,
    cut: CutKind = "mean",
    n_probes: int = N_PROBES,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[Cut, PromptWeights]:
    """Weigh normalised graphs, and cut their mean or the diffused affinity."""
    rng = check_random_state(random_state)
    stack = stack_graphs(graphs, n_threads)
    back = np.argsort(stack.order)
    probes = rng.choice([-1.0, 1.0], size=(len(back), n_probes))
    prompts, weights, pairs = weigh_graphs(
        stack, n_clusters, options, probes, rng, n_threads, progress
    )
    if cut == "mean":
        mean = stack.mean(weights)
        del stack  # It is as large as all graphs together.
        found = cut_graph(mean, n_clusters, start=pairs, random_state=rng, n_threads=n_threads)
    else:
        found = cut_implied_affinity(
            stack,
            weights,
            pairs,
            n_clusters,
            options.mu,
            n_steps=options.max_iter if options.single_steps else None,
            random_state=rng,
            n_threads=n_threads,
        )
    if progress:
        progress("cutting", 1, 1)
    found = found.in_order(back)
    found.graph.eliminate_zeros()
    return found, prompts


def weigh_graphs(
    stack: GraphStack,
    n_clusters: int,
    options: DiffusionOptions,
    probes: NDArray[Any],
    rng: np.random.RandomState,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[PromptWeights, NDArray[np.float64], Eigenpairs]:
    """Alternate between eigenpairs and weights until the weights settle.

    Also returns the weights of the last mean graph, and its leading eigenpairs.
    """
    n_images, n_prompts = stack.pattern.shape[0], len(stack.edges)
    # The whole spectrum of few images is cheap, and leaves nothing to estimate.
    n_known = n_images if n_images <= DENSE_SIZE else n_clusters
    tol = -1.0 if options.single_steps else max(options.tol, _WEIGHT_NOISE)
    weights, pairs, next_change = np.full(n_prompts, 1 / n_prompts), None, np.inf
    objective: list[float] = []
    steps: list[NDArray[np.float64]] = []
    while True:
        mean_edges = weights @ stack.edges
        graph = with_entries(stack.pattern, mean_edges)
        pairs = top_eigenpairs(
            graph,
            n_clusters,
            n_spare=max(guard_vectors(n_clusters), n_known - n_clusters),
            tol=RESIDUAL,
            start=pairs,
            random_state=rng,
            n_threads=n_threads,
            progress=progress,
        )
        if len(objective) == options.max_iter or next_change <= tol:
            break
        n_steps = len(objective) + 1 if options.single_steps else None
        split = _split_spectrum(graph, pairs, n_known, probes, options.mu, n_threads, n_steps)
        losses = _losses(stack, mean_edges, split, n_threads, progress)
        before, weights = weights, simplex_weights(losses, options.lam)
        steps.append(weights)
        penalty = options.mu * split.distance + options.lam / 2 * weights @ weights
        objective.append(float(weights @ losses + penalty))
        change = np.abs(weights - before).max()
        if change <= tol:
            weights = before  # These eigenpairs belong to their mean graph.
            break
        next_change = _PER_SHIFT * _relative_shift(weights - before, stack, mean_edges) * change
    n_kept = n_clusters + guard_vectors(n_clusters)
    pairs = Eigenpairs(pairs.values[:n_kept], pairs.vectors[:, :n_kept])
    found = PromptWeights(steps[-1], losses, np.array(objective), np.array(steps))
    return found, weights, pairs


def _losses(
    stack: GraphStack,
    mean_edges: NDArray[np.float64],
    split: _Split,
    n_threads: int,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Return the loss H_b of every prompt."""
    losses = np.empty(len(stack.edges))
    for prompt, own in enumerate(stack.edges):
        difference = with_entries(stack.pattern, own - mean_edges)
        losses[prompt] = split.square - _two_sided_trace(difference, split, n_threads)
        if progress:
            progress("weighing prompts", prompt + 1, len(losses))
    return losses


def _relative_shift(
    change: NDArray[np.float64], stack: GraphStack, mean_edges: NDArray[np.float64]
) -> float:
    """Return the relative change of the mean graph for a change of the weights."""
    return float(np.linalg.norm(change @ stack.edges) / np.linalg.norm(mean_edges))


class _Split(NamedTuple):
    """``f(S_bar) = c I + R``, with R known on the leading vectors and on probes of the rest."""

    pairs: Eigenpairs
    floor: float  # c = f(0)
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
    n_steps: int | None = None,
) -> _Split:
    pairs = Eigenpairs(eigenpairs.values[:k], eigenpairs.vectors[:, :k])
    values, vectors = pairs

    def f(x: NDArray[Any]) -> NDArray[Any]:
        return diffused(x, mu, n_steps)

    floor = float(f(np.zeros(1))[0])

    def smooth(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(f(x) - floor)

    def twice(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(x * f(x) ** 2)

    probes = probes.astype(vectors.dtype)
    probes -= tall_product(vectors, inner_products(vectors, probes, n_threads), n_threads)
    if k == len(vectors):
        probes[:] = 0  # Only rounding errors are left.
    interval = spectrum_floor(graph), rest_ceiling(eigenpairs, k)
    smooth_probes, twice_probes = apply_functions(
        (smooth, twice), graph, probes, interval, n_threads=n_threads
    )
    rest = len(vectors) - len(values)
    smooth_trace = _mean_dot(probes, smooth_probes)
    square = (
        float(np.sum(f(values) ** 2))
        + floor**2 * rest
        + 2 * floor * smooth_trace
        + _mean_dot(smooth_probes, smooth_probes)
    )
    trace = float(np.sum(f(values))) + floor * rest + smooth_trace
    mean_trace = float(values @ twice(values)) + _mean_dot(
        sparse_product(graph.astype(probes.dtype), probes, n_threads), twice_probes
    )
    distance = square - 2 * trace + len(vectors)
    leading, on_probes = (smooth(values), twice(values)), (smooth_probes, twice_probes)
    return _Split(pairs, floor, *leading, probes, *on_probes, square, distance, mean_trace)


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
    # Only pairs of different probes, which makes the estimate unbiased.
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
    overlap = 0.0
    if not few:
        # Random mixtures of the vectors estimate the sum of all squared overlaps.
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
