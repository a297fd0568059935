"""The effect of our method's parameters: the numbers behind the paper's ablation figures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state

from nouncut.compute.threads import count_threads
from nouncut.method.cut import cut_implied_affinity
from nouncut.method.diffusion import DiffusionOptions
from nouncut.method.graphs import normalize_graph, stack_graphs, symmetric_graphs
from nouncut.method.kernel import Kernel, noun_probabilities, ntk_kernel
from nouncut.method.labels import assign_labels
from nouncut.method.search import search_neighbors
from nouncut.method.spectral_diffusion import weigh_graphs
from nouncut.method.temperature import choose_tau
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.ours import PUBLISHED_NEIGHBORS, fit_ours
from nouncut.paper.baselines.problem import Problem, unit_features
from nouncut.paper.baselines.tac import tac_features
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.published import METRICS, ParameterName
from nouncut.paper.scores import Result, clustering_scores

PARAMETERS: dict[ParameterName, str] = {
    "tau": "tau",
    "q": "n_neighbors",
    "mu": "mu",
    "lambda": "lam",
}
"""The paper's names, and ours."""

# Around the paper's settings; its figures are pictures, whose values cannot be read off exactly.
_TAU_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
_VALUES: dict[ParameterName, tuple[float, ...]] = {
    "q": (5, 10, 20, 30, 50, 75, 100),
    "mu": (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0),
    "lambda": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 1000.0),
}
_DEFAULTS: dict[ParameterName, float] = {"q": 30, "mu": 0.1, "lambda": 10.0}
_SINGLE_STEPS = DiffusionOptions(max_iter=10, single_steps=True)
_MAX_SHOWN_IMAGES = 600
_STRONG = 0.995


@dataclass(frozen=True)
class Curve:
    """Scores of shape (n_values, n_seeds, 3) in per cent, as one parameter changes."""

    parameter: ParameterName
    values: tuple[float, ...]
    default: float
    scores: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean over seeds, (n_values, 3)."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Sample standard deviation over seeds, (n_values, 3); NaN for a single seed."""
        if self.scores.shape[1] == 1:
            return np.full_like(self.means, np.nan)
        return np.asarray(self.scores.std(axis=1, ddof=1))

    def records(self) -> list[dict[str, Any]]:
        """Return one record per value and metric."""
        return [
            {
                "parameter": self.parameter,
                "value": value,
                "metric": metric,
                "mean": float(mean),
                "deviation": None if np.isnan(deviation) else float(deviation),
            }
            for value, means, deviations in zip(
                self.values, self.means, self.deviations, strict=True
            )
            for metric, mean, deviation in zip(METRICS, means, deviations, strict=True)
        ]


@dataclass(frozen=True)
class Convergence:
    """The objective and the NMI in per cent after every iteration of the diffusion."""

    objective: tuple[float, ...]
    nmi: tuple[float, ...]


class AffinityMatrix(NamedTuple):
    """Affinities from 0 to 1, relative to a strong one, and the NMI of the clusters in per cent."""

    title: str
    values: NDArray[np.float64]
    nmi: float


def parameter_values(parameter: ParameterName, problem: Problem) -> tuple[tuple[float, ...], float]:
    """Return the values of a parameter to try, and its default; small sets try fewer q."""
    if parameter == "tau":
        default = _tau(problem)
        return tuple(float(f"{factor * default:.3g}") for factor in _TAU_FACTORS), default
    largest = len(problem.visual) - 1 if parameter == "q" else np.inf
    return tuple(value for value in _VALUES[parameter] if value <= largest), _DEFAULTS[parameter]


def vary_parameter(encoded: EncodedDataset, parameter: ParameterName, seeds: int = 5) -> Curve:
    """Score our method as one parameter changes; results are kept."""
    values, default = parameter_values(parameter, encoded.problem(0))
    scores = np.empty((len(values), seeds, len(METRICS)))
    for seed in range(seeds):
        problem = encoded.problem(seed)
        for row, value in enumerate(values):
            result = encoded.setup.results.read_or_compute(
                encoded.result_facts(f"ours-{parameter}-{value:g}", seed),
                partial(_score, problem, encoded.labels, seed, {PARAMETERS[parameter]: value}),
            )
            scores[row, seed] = [100 * result[metric.lower()] for metric in METRICS]
            done = seed * len(values) + row + 1
            encoded.setup.progress(f"{parameter} on {encoded.name}", done, seeds * len(values))
    return Curve(parameter, values, default, scores)


def follow_diffusion(problem: Problem, labels: NDArray[Any], seed: int = 0) -> Convergence:
    """Follow the diffusion in single steps, as in the paper's Algorithm 1.

    Neighbours are searched once and the diffusion runs once; every step is then cut.
    """
    rng, n_threads, k = check_random_state(seed), count_threads(-1), problem.n_clusters
    stack = stack_graphs(_prompt_graphs(problem, n_threads), n_threads)
    prompts, _, pairs = weigh_graphs(stack, k, _SINGLE_STEPS, rng, n_threads)
    even = np.full(len(problem.nouns), 1 / len(problem.nouns))
    scores = []
    # An affinity step comes before the weights of the same iteration.
    for step, weights in enumerate([even, *prompts.steps[:-1]], start=1):
        cut = cut_implied_affinity(
            stack,
            weights,
            pairs,
            k,
            _SINGLE_STEPS.mu,
            n_steps=step,
            random_state=rng,
            n_threads=n_threads,
        )
        found = assign_labels(cut.eigenpairs.vectors, "discretize", rng, n_threads)
        scores.append(100 * clustering_scores(labels[stack.order], found).nmi)
    return Convergence(tuple(map(float, prompts.objective)), tuple(scores))


def _prompt_graphs(problem: Problem, n_threads: int) -> list[csr_array]:
    """Return the normalised graphs of all prompts."""
    nouns = [unit_features(own) for own in problem.nouns]
    kernel = Kernel(problem.unit_visual, problem.unit_semantic, nouns, _tau(problem))
    q = min(PUBLISHED_NEIGHBORS, len(kernel.features) - 1)
    found = search_neighbors(kernel, q, n_threads=n_threads)
    return [normalize_graph(graph)[0] for graph in symmetric_graphs(found.neighbors)]


def class_affinities(problem: Problem, labels: NDArray[Any], seed: int = 0) -> list[AffinityMatrix]:
    """Return the paper's affinity matrices, of up to 600 images sorted by class."""
    drawn = np.sort(np.random.default_rng(seed).permutation(len(labels))[:_MAX_SHOWN_IMAGES])
    shown = drawn[np.argsort(labels[drawn], kind="stable")]
    tau, visual = _tau(problem), problem.unit_visual[shown]
    beside_text = tac_features(problem, problem.nouns)[shown]
    probabilities = noun_probabilities(problem.unit_semantic[shown], problem.nouns, tau)
    affinities = {
        "clip-sc-rbf": ("CLIP", rbf_kernel(visual, gamma=1 / tau)),
        "tac-sc-rbf": ("TAC", rbf_kernel(beside_text, gamma=1 / tau)),
        "ours": ("Ours", np.mean([ntk_kernel(visual, p, tau=tau) for p in probabilities], axis=0)),
    }
    found = []
    for method, (title, values) in affinities.items():
        clusters = METHODS[method].fit_predict(problem, seed)
        nmi = 100 * clustering_scores(labels, clusters).nmi
        found.append(AffinityMatrix(title, _relative(values), nmi))
    return found


def _tau(problem: Problem) -> float:
    if problem.tau is not None:
        return problem.tau
    return float(f"{choose_tau(problem.unit_semantic, problem.nouns):.3g}")


def _score(
    problem: Problem, labels: NDArray[Any], seed: int, options: dict[str, Any]
) -> dict[str, float]:
    start = time.perf_counter()
    found = fit_ours(problem, seed, **{"tau": _tau(problem), **options}).labels_
    seconds = time.perf_counter() - start
    return Result(*clustering_scores(labels, found), seconds=seconds)._asdict()


def _relative(affinity: NDArray[Any]) -> NDArray[np.float64]:
    """Divide by an affinity that one in 200 pairs exceeds, so that all kernels share a scale."""
    pairs = affinity[~np.eye(len(affinity), dtype=bool)]
    strong = float(np.quantile(pairs, _STRONG))
    return np.clip(np.asarray(affinity, np.float64) / max(strong, 1e-300), 0, 1)
