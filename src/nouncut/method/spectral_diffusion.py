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
from typing import Any, NamedTuple, Protocol

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
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[Cut, PromptWeights]:
    """Weigh normalised graphs, and cut their mean or the diffused affinity."""
    rng = check_random_state(random_state)
    stack = stack_graphs(graphs, n_threads)
    back = np.argsort(stack.order)
    prompts, weights, pairs = weigh_graphs(stack, n_clusters, options, rng, n_threads, progress)
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
    rng: np.random.RandomState,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> tuple[PromptWeights, NDArray[np.float64], Eigenpairs]:
    """Alternate between eigenpairs and weights until the weights settle.

    Also returns the weights of the last mean graph, and its leading eigenpairs.
    """
    problem = _StackProblem(stack, n_clusters, options.mu, rng, n_threads, progress)
    found, weights = settle_weights(problem, len(stack.edges), options)
    assert problem.pairs is not None
    values, vectors = problem.pairs
    n_kept = n_clusters + guard_vectors(n_clusters)
    return found, weights, Eigenpairs(values[:n_kept], vectors[:, :n_kept])


class WeighingProblem(Protocol):
    """Graphs whose weights are sought, wherever their rows are."""

    def solve(self, weights: NDArray[np.float64]) -> None:
        """Find the leading eigenpairs of the mean graph, from those of the last one."""

    def judge(self, n_steps: int | None) -> tuple[NDArray[np.float64], float]:
        """Return the loss H_b of every prompt, and ||A - I||^2."""

    def shift(self, change: NDArray[np.float64]) -> float:
        """Return the relative change of the mean graph for a change of the weights."""


def settle_weights(
    problem: WeighingProblem, n_prompts: int, options: DiffusionOptions
) -> tuple[PromptWeights, NDArray[np.float64]]:
    """Alternate between eigenpairs and weights; also return the weights of the last mean graph."""
    tol = -1.0 if options.single_steps else max(options.tol, _WEIGHT_NOISE)
    weights, next_change = np.full(n_prompts, 1 / n_prompts), np.inf
    objective: list[float] = []
    steps: list[NDArray[np.float64]] = []
    while True:
        problem.solve(weights)
        if len(objective) == options.max_iter or next_change <= tol:
            break
        losses, distance = problem.judge(len(objective) + 1 if options.single_steps else None)
        before, weights = weights, simplex_weights(losses, options.lam)
        steps.append(weights)
        penalty = options.mu * distance + options.lam / 2 * weights @ weights
        objective.append(float(weights @ losses + penalty))
        change = np.abs(weights - before).max()
        if change <= tol:
            weights = before  # These eigenpairs belong to their mean graph.
            break
        next_change = _PER_SHIFT * problem.shift(weights - before) * change
    return PromptWeights(steps[-1], losses, np.array(objective), np.array(steps)), weights


class _StackProblem:
    """The graphs of a stack in memory; see `WeighingProblem`."""

    def __init__(
        self,
        stack: GraphStack,
        n_clusters: int,
        mu: float,
        rng: np.random.RandomState,
        n_threads: int,
        progress: Progress | None,
    ) -> None:
        self._stack, self._n_clusters, self._mu = stack, n_clusters, mu
        self._rng, self._n_threads, self._progress = rng, n_threads, progress
        self.pairs: Eigenpairs | None = None
        n_images = stack.pattern.shape[0]
        # The whole spectrum of few images is cheap, and leaves nothing to estimate.
        self._n_known = n_images if n_images <= DENSE_SIZE else n_clusters

    def solve(self, weights: NDArray[np.float64]) -> None:
        self._mean_edges = weights @ self._stack.edges
        self._graph = with_entries(self._stack.pattern, self._mean_edges)
        self.pairs = top_eigenpairs(
            self._graph,
            self._n_clusters,
            n_spare=max(guard_vectors(self._n_clusters), self._n_known - self._n_clusters),
            tol=RESIDUAL,
            start=self.pairs,
            random_state=self._rng,
            n_threads=self._n_threads,
            progress=self._progress,
        )

    def judge(self, n_steps: int | None) -> tuple[NDArray[np.float64], float]:
        assert self.pairs is not None
        functions, n_threads = Diffusion(self._mu, n_steps), self._n_threads
        values = self.pairs.values[: self._n_known]
        rows = self._split_rows(functions)
        spectrum = Spectrum.of(values, functions, len(rows.vectors))
        traces = spectrum.traces(probe_sums(self._graph, rows, rows, n_threads))
        losses = np.empty(len(self._stack.edges))
        for prompt, own in enumerate(self._stack.edges):
            difference = with_entries(self._stack.pattern, own - self._mean_edges)
            sums = difference_sums(difference, rows, rows, spectrum.smooth, n_threads)
            losses[prompt] = spectrum.loss(traces, sums)
            if self._progress:
                self._progress("weighing prompts", prompt + 1, len(losses))
        return losses, traces.distance

    def shift(self, change: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(change @ self._stack.edges) / np.linalg.norm(self._mean_edges))

    def _split_rows(self, functions: Diffusion) -> SplitRows:
        assert self.pairs is not None
        k, n_threads = self._n_known, self._n_threads
        vectors = self.pairs.vectors[:, :k]
        probes = random_probes(self._stack.order).astype(vectors.dtype)
        probes -= tall_product(vectors, inner_products(vectors, probes, n_threads), n_threads)
        if k == len(vectors):
            probes[:] = 0  # Only rounding errors are left.
        interval = spectrum_floor(self._graph), rest_ceiling(self.pairs, k)
        on_probes = apply_functions(
            (functions.smooth, functions.twice), self._graph, probes, interval, n_threads=n_threads
        )
        return SplitRows(vectors, probes, *on_probes)


def random_probes(images: NDArray[Any]) -> NDArray[np.float64]:
    """Return random signs (n_images, N_PROBES) that follow from the images' numbers alone.

    So losses are estimated alike in any order of the images, and on any number of machines.
    """
    # SplitMix64 turns consecutive numbers into independent words of 64 random bits.
    word = (images.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    bits = word[:, None] >> np.arange(N_PROBES, dtype=np.uint64) & np.uint64(1)
    return 1 - 2 * bits.astype(np.float64)


class Diffusion(NamedTuple):
    """The function f of the diffusion, ``f(S_bar) = c I + R``, and those that losses need."""

    mu: float
    n_steps: int | None = None

    def f(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the diffused eigenvalues."""
        return diffused(x, self.mu, self.n_steps)

    @property
    def floor(self) -> float:
        """The constant c = f(0)."""
        return float(self.f(np.zeros(1))[0])

    def smooth(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the eigenvalues of R."""
        return np.asarray(self.f(x) - self.floor)

    def twice(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the eigenvalues of S_bar A^2."""
        return np.asarray(x * self.f(x) ** 2)


class SplitRows(NamedTuple):
    """Rows of the leading vectors, of probes of the rest, and of R and S_bar A^2 on the probes."""

    vectors: NDArray[Any]
    probes: NDArray[Any]
    smooth_probes: NDArray[Any]
    twice_probes: NDArray[Any]


class ProbeSums(NamedTuple):
    """Sums over rows, means over probes; those of parts of the rows add up."""

    smooth: float  # probes . R probes
    smooth_square: float  # |R probes|^2
    mean: float  # S_bar probes . S_bar A^2 probes


class DifferenceSums(NamedTuple):
    """Sums over rows for the difference D of a graph from the mean; those of parts add up."""

    quotients: NDArray[np.float64]  # x^T D x of the leading vectors
    squares: NDArray[np.float64]  # ||D x||^2 of the leading vectors
    inner: NDArray[np.float64]  # X^T D X, or X^T D times mixtures of X if there are many vectors
    across: NDArray[np.float64]  # X^T D [probes, R probes]
    pairs: NDArray[np.float64]  # (R probes)^T D probes
    linear: float  # S_bar A^2 probes . D probes
    once: float  # D probes . D R probes
    square: float  # ||D||^2


def probe_sums(
    graph: csr_array, rows: SplitRows, around: SplitRows, n_threads: int = 1
) -> ProbeSums:
    """Sum over rows of a graph; `around` has the rows of its columns."""
    image = sparse_product(graph.astype(rows.probes.dtype), around.probes, n_threads)
    return ProbeSums(
        _mean_dot(rows.probes, rows.smooth_probes),
        _mean_dot(rows.smooth_probes, rows.smooth_probes),
        _mean_dot(image, rows.twice_probes),
    )


def difference_sums(
    difference: csr_array,
    rows: SplitRows,
    around: SplitRows,
    smooth: NDArray[Any],
    n_threads: int = 1,
) -> DifferenceSums:
    """Sum over rows of a difference; `around` has the rows of its columns."""
    vectors = rows.vectors
    (k, s), narrow = (vectors.shape[1], rows.probes.shape[1]), difference.astype(vectors.dtype)
    both = np.hstack([around.probes, around.smooth_probes])
    image = sparse_product(narrow, both, n_threads)
    quotients, squares = np.empty(k), np.empty(k)
    few = k <= _EXACT_OVERLAP
    inner = np.empty((k, k if few else _MIXTURES))
    if not few:
        # Random mixtures of the vectors estimate the sum of all squared overlaps.
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(k, _MIXTURES))
        mixed = tall_product(around.vectors, np.sqrt(smooth)[:, None] * signs, n_threads)
        inner[:] = inner_products(vectors, sparse_product(narrow, mixed, n_threads), n_threads)
    for first in range(0, k, _VECTORS_AT_ONCE):
        part = slice(first, first + _VECTORS_AT_ONCE)
        own = sparse_product(narrow, around.vectors[:, part], n_threads)
        quotients[part] = np.einsum("ij,ij->j", vectors[:, part], own, dtype=np.float64)
        squares[part] = np.einsum("ij,ij->j", own, own, dtype=np.float64)
        if few:
            inner[:, part] = inner_products(vectors, own, n_threads)
    return DifferenceSums(
        quotients,
        squares,
        inner,
        inner_products(vectors, image, n_threads),
        inner_products(rows.smooth_probes, image[:, :s], n_threads),
        _mean_dot(rows.twice_probes, image[:, :s]),
        _mean_dot(image[:, :s], image[:, s:]),
        float(np.sum(difference.data**2, dtype=np.float64)),
    )


class Traces(NamedTuple):
    """Traces that all prompts share."""

    square: float  # ||A||^2
    distance: float  # ||A - I||^2
    mean: float  # tr(S_bar^2 A^2)


class Spectrum(NamedTuple):
    """The leading eigenvalues, functions of them, and the number of images."""

    values: NDArray[np.float64]
    diffused: NDArray[Any]
    smooth: NDArray[Any]
    twice: NDArray[Any]
    floor: float
    n_images: int

    @classmethod
    def of(cls, values: NDArray[np.float64], functions: Diffusion, n_images: int) -> Spectrum:
        """Apply the functions of a diffusion to leading eigenvalues."""
        found = functions.f(values), functions.smooth(values), functions.twice(values)
        return cls(values, *found, functions.floor, n_images)

    def traces(self, sums: ProbeSums) -> Traces:
        """Return the traces; they are exact on the leading vectors, and estimated on the rest."""
        rest, floor = self.n_images - len(self.values), self.floor
        square = (
            float(np.sum(self.diffused**2))
            + floor**2 * rest
            + 2 * floor * sums.smooth
            + sums.smooth_square
        )
        trace = float(np.sum(self.diffused)) + floor * rest + sums.smooth
        mean = float(self.values @ self.twice) + sums.mean
        return Traces(square, square - 2 * trace + self.n_images, mean)

    def loss(self, traces: Traces, sums: DifferenceSums) -> float:
        """Return ``H_b = ||A||^2 - <A, S_b A S_b>`` of a prompt."""
        smooth, s = self.smooth, sums.pairs.shape[1]
        if len(smooth) <= _EXACT_OVERLAP:
            overlap = float(smooth @ sums.inner**2 @ smooth)
        else:
            overlap = float(np.sum(smooth @ sums.inner**2) / _MIXTURES)
        linear = self.twice @ sums.quotients + sums.linear
        once_smooth = smooth @ sums.squares + sums.once
        across = smooth @ (sums.across[:, s:] * sums.across[:, :s]).sum(axis=1) / s
        # Only pairs of different probes, which makes the estimate unbiased.
        outside = np.sum(sums.pairs * sums.pairs.T) - np.sum(np.diag(sums.pairs) ** 2)
        quadratic = (
            self.floor**2 * sums.square
            + 2 * self.floor * once_smooth
            + (overlap + 2 * across + outside / (s * (s - 1)))
        )
        return float(traces.square - (traces.mean + 2 * linear + quadratic))


def _mean_dot(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Return the mean inner product of corresponding columns."""
    return float(np.einsum("ij,ij->", left, right, dtype=np.float64) / left.shape[1])
