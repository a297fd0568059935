"""Our method with the paper's settings."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from nouncut.method.estimator import NTKSpectralClustering
from nouncut.paper.baselines.problem import Problem

PUBLISHED_NEIGHBORS = 30
_PUBLISHED = {
    "assign_labels": "discretize",
    "n_neighbors": PUBLISHED_NEIGHBORS,
    "ensemble": "diffusion",
}
# What `nouncut cluster` does.
PRODUCT_DEFAULTS: dict[str, Any] = {
    "assign_labels": "merge",
    "n_neighbors": "auto",
    "ensemble": "weighted",
    "semantic_weight": "auto",
}


def fit_ours(
    problem: Problem, seed: int, nouns: list[NDArray[Any]] | None = None, **options: Any
) -> NTKSpectralClustering:
    """Fit our method as published, but for `options`; with the nouns of TAC's filter by default."""
    settings = {
        "tau": "auto" if problem.tau is None else problem.tau,
        "random_state": seed,
        "n_jobs": -1,
        "neighbors": problem.neighbors,
        **_PUBLISHED,
        **options,
    }
    return NTKSpectralClustering(problem.n_clusters, **settings).fit(
        problem.visual,
        noun_features=problem.nouns if nouns is None else nouns,
        semantic_features=problem.semantic,
    )
