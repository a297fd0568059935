"""The time of our method's stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.threads import count_threads
from nouncut.method.cut import Cut, cut_affinity, cut_implied_affinity
from nouncut.method.diffusion import PUBLISHED
from nouncut.method.ensemble import choose_solver
from nouncut.method.exact_diffusion import exact_diffusion
from nouncut.method.graphs import mean_graph, normalize_graph, stack_graphs, symmetric_graphs
from nouncut.method.kernel import Kernel
from nouncut.method.labels import assign_labels
from nouncut.method.search import search_neighbors
from nouncut.method.spectral_diffusion import weigh_graphs
from nouncut.method.temperature import choose_tau
from nouncut.paper.baselines.ours import PUBLISHED_NEIGHBORS
from nouncut.paper.baselines.problem import Problem, unit_features

_GRAPHS, _DIFFUSION, _EIGENVECTORS, _LABELS = "graphs", "diffusion", "eigenvectors", "labels"
STAGES = (_GRAPHS, _DIFFUSION, _EIGENVECTORS, _LABELS)
# The paper's 1.1, 8.2 and 3.6 minutes: ImageNet-1K on an A100. Its third stage, spectral
# clustering, is eigenvectors and labels.
PUBLISHED_SECONDS = {_GRAPHS: 66.0, _DIFFUSION: 492.0, _EIGENVECTORS: 216.0}


def run_stages(problem: Problem, seed: int) -> tuple[NDArray[np.intp], dict[str, float]]:
    """Run the stages of the published method one by one; return labels, and seconds by stage."""
    seconds: dict[str, float] = {}
    rng, n_threads = check_random_state(seed), count_threads(-1)
    with _timed(_GRAPHS, seconds):
        kernel = _kernel(problem)
        q = min(PUBLISHED_NEIGHBORS, len(kernel.features) - 1)
        found = search_neighbors(kernel, q, n_threads=n_threads)
        symmetric = symmetric_graphs(found.neighbors, neighbors=problem.neighbors)
        graphs = [normalize_graph(graph)[0] for graph in symmetric]
    cut = _cut(graphs, problem.n_clusters, rng, n_threads, seconds)
    with _timed(_LABELS, seconds):
        labels = assign_labels(cut.eigenpairs.vectors, "discretize", rng, n_threads)
    return labels, seconds


@contextmanager
def _timed(stage: str, seconds: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


def _cut(
    graphs: list[csr_array],
    k: int,
    rng: np.random.RandomState,
    n_threads: int,
    seconds: dict[str, float],
) -> Cut:
    """Do what `ensemble_graphs` does with the diffused affinity, and time its two stages."""
    if choose_solver("auto", graphs[0].shape[0], len(graphs)) == "exact":
        with _timed(_DIFFUSION, seconds):
            affinity, prompts = exact_diffusion(graphs, PUBLISHED, n_threads)
            mean = mean_graph(graphs, prompts.weights)
        with _timed(_EIGENVECTORS, seconds):
            return cut_affinity(affinity, mean, k, n_threads)
    with _timed(_DIFFUSION, seconds):
        stack = stack_graphs(graphs, n_threads)
        _, weights, pairs = weigh_graphs(stack, k, PUBLISHED, rng, n_threads)
    with _timed(_EIGENVECTORS, seconds):
        found = cut_implied_affinity(
            stack, weights, pairs, k, PUBLISHED.mu, random_state=rng, n_threads=n_threads
        )
        return found.in_order(np.argsort(stack.order))


def _kernel(problem: Problem) -> Kernel:
    semantic = problem.unit_semantic
    prompts = [unit_features(nouns) for nouns in problem.nouns]
    tau = choose_tau(semantic, prompts) if problem.tau is None else problem.tau
    return Kernel(problem.unit_visual, semantic, prompts, tau)
