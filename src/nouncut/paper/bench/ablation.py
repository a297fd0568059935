"""What the parameters of our method do: the numbers behind the paper's ablation figures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import silent
from nouncut.compute.rows import unit_rows
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.kernel import noun_probabilities, ntk_kernel
from nouncut.method.temperature import choose_tau
from nouncut.paper.baselines.method import Problem
from nouncut.paper.baselines.ours import PUBLISHED_NEIGHBORS
from nouncut.paper.baselines.tac import text_counterparts
from nouncut.paper.bench.results import Result, ResultFolder
from nouncut.paper.bench.subject import Subject, Workshop
from nouncut.paper.scores import clustering_scores
from nouncut.paper.tables.table import METRICS
from nouncut.words.filters import mean_prompt_features

Parameter = Literal["tau", "q", "mu", "lambda"]
PARAMETERS: dict[Parameter, str] = {
    "tau": "tau",
    "q": "n_neighbors",
    "mu": "mu",
    "lambda": "lam",
}
"""The paper's names, and ours."""

# Around the paper's settings; its figures are pictures, whose values cannot be read off exactly.
_TAU_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
_VALUES: dict[Parameter, tuple[float, ...]] = {
    "q": (5, 10, 20, 30, 50, 75, 100),
    "mu": (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0),
    "lambda": (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 1000.0),
}
# The fast solver is all but done after its first step, so small sets show the published one.
_MOST_STEPWISE = 1000
_SINGLE_STEPS = {"solver": "exact", "max_inner_iter": 1, "max_iter": 10}
_PUBLISHED = {"ensemble": "diffusion", "n_neighbors": PUBLISHED_NEIGHBORS}
_DEFAULTS: dict[Parameter, float] = {"q": 30, "mu": 0.1, "lambda": 10.0}


@dataclass(frozen=True)
class Curve:
    """Scores as one parameter changes."""

    parameter: Parameter
    values: tuple[float, ...]
    default: float
    scores: NDArray[np.float64]

    def records(self) -> list[dict[str, Any]]:
        """Return one record per value and metric."""
        return [
            {
                "parameter": self.parameter,
                "value": value,
                "metric": metric,
                "mean": float(scores.mean()),
                "deviation": float(scores.std(ddof=1)) if len(scores) > 1 else None,
            }
            for value, by_seed in zip(self.values, self.scores, strict=True)
            for metric, scores in zip(METRICS, by_seed.T, strict=True)
        ]


def parameter_values(parameter: Parameter, problem: Problem) -> tuple[tuple[float, ...], float]:
    """Return what a parameter is set to, and what it is otherwise."""
    if parameter == "tau":
        default = _tau(problem)
        return tuple(float(f"{factor * default:.3g}") for factor in _TAU_FACTORS), default
    most = len(problem.visual) - 1 if parameter == "q" else np.inf
    return tuple(value for value in _VALUES[parameter] if value <= most), _DEFAULTS[parameter]


def ablate(subject: Subject, workshop: Workshop, parameter: Parameter, seeds: int = 5) -> Curve:
    """Score our method as one parameter changes; what has been computed is kept."""
    folder = ResultFolder(workshop.output / "results")
    report = workshop.progress or silent
    values, default = parameter_values(parameter, subject.problem(0))
    found = np.empty((len(values), seeds, len(METRICS)))
    for seed in range(seeds):
        problem = subject.problem(seed)
        for place, value in enumerate(values):
            facts = {**subject.facts(seed), "method": f"ours-{parameter}-{value:g}"}
            facts["model_name"] = workshop.model
            result = folder.read(facts)
            if result is None:
                result = _run(problem, subject.labels, seed, {PARAMETERS[parameter]: value})
                folder.write(facts, result)
            found[place, seed] = [100 * score for score in result.scores]
            report(
                f"{parameter} on {subject.name}", seed * len(values) + place + 1, found[..., 0].size
            )
    return Curve(parameter, values, default, found)


@dataclass(frozen=True)
class Convergence:
    """The diffusion step by step."""

    objective: tuple[float, ...]
    nmi: tuple[float, ...]


def convergence(problem: Problem, labels: NDArray[Any], seed: int = 0) -> Convergence:
    """Follow the diffusion: up to 1,000 images by single steps of the published iteration."""
    options = _SINGLE_STEPS if len(labels) <= _MOST_STEPWISE else {}
    whole = _fit(problem, seed, options)
    steps = range(1, len(whole.objective_) + 1)
    fits = (_fit(problem, seed, {**options, "max_iter": step}) for step in steps)
    scores = [100 * clustering_scores(labels, fit.labels_).nmi for fit in fits]
    return Convergence(tuple(map(float, whole.objective_)), tuple(scores))


def affinities(
    problem: Problem, labels: NDArray[Any], *, most: int = 600, seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """Return the affinities that the paper shows, images sorted by class."""
    shown = np.random.default_rng(seed).permutation(len(labels))[:most]
    shown = np.sort(shown)[np.argsort(labels[np.sort(shown)], kind="stable")]
    visual = unit_rows(problem.visual)[shown]
    semantic = unit_rows(problem.semantic)[shown]
    counterparts = text_counterparts(semantic, mean_prompt_features(problem.nouns))
    tau = _tau(problem)
    probabilities = noun_probabilities(semantic, problem.nouns, tau)
    kernels = [ntk_kernel(visual, one, tau=tau) for one in probabilities]
    return {
        "images, RBF": _stretched(_rbf(visual)),
        "TAC, RBF": _stretched(_rbf(np.hstack([visual, counterparts]))),
        "ours": _stretched(np.mean(kernels, axis=0)),
    }


def _tau(problem: Problem) -> float:
    if problem.tau is not None:
        return problem.tau
    return float(f"{choose_tau(unit_rows(problem.semantic), problem.nouns):.3g}")


def _fit(problem: Problem, seed: int, options: dict[str, Any]) -> NTKSpectralClustering:
    model = NTKSpectralClustering(
        problem.n_clusters,
        **{"tau": _tau(problem), "random_state": seed, "n_jobs": -1, **_PUBLISHED, **options},
    )
    return model.fit(
        problem.visual, noun_features=problem.nouns, semantic_features=problem.semantic
    )


def _run(problem: Problem, labels: NDArray[Any], seed: int, options: dict[str, Any]) -> Result:
    start = time.perf_counter()
    found = _fit(problem, seed, options).labels_
    seconds = time.perf_counter() - start
    return Result(*clustering_scores(labels, found), seconds=seconds)


def _rbf(features: NDArray[Any]) -> NDArray[np.float64]:
    squared = (features**2).sum(axis=1)
    distances = squared[:, None] + squared - 2 * (features @ features.T)
    return np.asarray(np.exp(-np.maximum(distances, 0)), dtype=np.float64)


def _stretched(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Return a matrix that fills the range from 0 to 1, its diagonal left out of account."""
    others = matrix[~np.eye(len(matrix), dtype=bool)]
    low, high = np.quantile(others, [0.01, 0.995])
    return np.asarray(np.clip((matrix - low) / max(high - low, 1e-12), 0, 1), dtype=np.float64)
