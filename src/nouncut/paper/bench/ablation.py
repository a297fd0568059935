"""The effect of our method's parameters: the numbers behind the paper's ablation figures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from nouncut.compute.rows import unit_rows
from nouncut.method.kernel import noun_probabilities, ntk_kernel
from nouncut.method.temperature import choose_tau
from nouncut.paper.baselines.ours import fit_ours
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.tac import text_counterparts
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.published import METRICS, ParameterName
from nouncut.paper.scores import Result, clustering_scores
from nouncut.words.filters import mean_prompt_features

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
# The fast solver is almost done after its first step; the published one shows more of them, but is
# slow for many images.
_MAX_STEPWISE_IMAGES = 1000
_SINGLE_STEPS = {"solver": "exact", "max_inner_iter": 1, "max_iter": 10}
_MAX_SHOWN_IMAGES = 600


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
    """Follow the diffusion: up to 1,000 images in single steps of the published iteration."""
    options: dict[str, Any] = {"tau": _tau(problem)}
    if len(labels) <= _MAX_STEPWISE_IMAGES:
        options |= _SINGLE_STEPS
    objective = fit_ours(problem, seed, **options).objective_
    steps = range(1, len(objective) + 1)
    fits = (fit_ours(problem, seed, **{**options, "max_iter": step}) for step in steps)
    scores = [100 * clustering_scores(labels, fit.labels_).nmi for fit in fits]
    return Convergence(tuple(map(float, objective)), tuple(scores))


def class_affinities(
    problem: Problem, labels: NDArray[Any], seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """Return the paper's affinity matrices from 0 to 1, of up to 600 images sorted by class."""
    drawn = np.random.default_rng(seed).permutation(len(labels))[:_MAX_SHOWN_IMAGES]
    shown = np.sort(drawn)[np.argsort(labels[np.sort(drawn)], kind="stable")]
    visual = unit_rows(problem.visual)[shown]
    semantic = unit_rows(problem.semantic)[shown]
    counterparts = text_counterparts(semantic, mean_prompt_features(problem.nouns))
    tau = _tau(problem)
    probabilities = noun_probabilities(semantic, problem.nouns, tau)
    kernels = [ntk_kernel(visual, one, tau=tau) for one in probabilities]
    return {
        "images, RBF": _rescale(rbf_kernel(visual, gamma=1)),
        "TAC, RBF": _rescale(rbf_kernel(np.hstack([visual, counterparts]), gamma=1)),
        "ours": _rescale(np.mean(kernels, axis=0)),
    }


def _tau(problem: Problem) -> float:
    if problem.tau is not None:
        return problem.tau
    return float(f"{choose_tau(unit_rows(problem.semantic), problem.nouns):.3g}")


def _score(
    problem: Problem, labels: NDArray[Any], seed: int, options: dict[str, Any]
) -> dict[str, float]:
    start = time.perf_counter()
    found = fit_ours(problem, seed, **{"tau": _tau(problem), **options}).labels_
    seconds = time.perf_counter() - start
    return Result(*clustering_scores(labels, found), seconds=seconds)._asdict()


def _rescale(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Stretch a matrix to the range from 0 to 1; the diagonal does not count."""
    others = matrix[~np.eye(len(matrix), dtype=bool)]
    low, high = np.quantile(others, [0.01, 0.995])
    return np.asarray(np.clip((matrix - low) / max(high - low, 1e-12), 0, 1), dtype=np.float64)
