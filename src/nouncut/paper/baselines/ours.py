"""Our method in the variants of the paper's tables."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.method.estimator import NTKSpectralClustering
from nouncut.paper.baselines.gradnorm import gradnorm_nouns
from nouncut.paper.baselines.method import Problem

PUBLISHED_NEIGHBORS = 30
Ensemble = Literal["diffusion", "average", "prompt_mean"]


def ours(problem: Problem, seed: int, *, ensemble: Ensemble = "diffusion") -> NDArray[np.intp]:
    """Cluster with the nouns of TAC's filter: RAD, naive or PE."""
    return _cluster(problem, problem.nouns, seed, ensemble)


def ours_with_prompt(problem: Problem, seed: int, *, prompt: int) -> NDArray[np.intp]:
    """Cluster with one prompt alone."""
    return _cluster(problem, [single_prompt(problem, prompt)], seed)


def ours_with_gradnorm_nouns(problem: Problem, seed: int) -> NDArray[np.intp]:
    """Cluster with the nouns of GradNorm's filter."""
    return _cluster(problem, gradnorm_nouns(problem, seed), seed)


def single_prompt(problem: Problem, prompt: int) -> NDArray[Any]:
    """Return the noun features of one prompt."""
    if prompt > len(problem.nouns):
        raise ValueError(
            f"Prompt {prompt} was asked for, but the nouns have {len(problem.nouns)}. "
            "Leave this method out, or encode the nouns with more prompts."
        )
    return problem.nouns[prompt - 1]


def _cluster(
    problem: Problem, nouns: list[NDArray[Any]], seed: int, ensemble: Ensemble = "diffusion"
) -> NDArray[np.intp]:
    model = NTKSpectralClustering(
        problem.n_clusters,
        tau="auto" if problem.tau is None else problem.tau,
        n_neighbors=PUBLISHED_NEIGHBORS,
        ensemble=ensemble,
        random_state=seed,
        n_jobs=-1,
    )
    labels: NDArray[np.intp] = model.fit_predict(
        problem.visual, noun_features=nouns, semantic_features=problem.semantic
    )
    return labels
