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
    """Cluster with the nouns of TAC's filter: RAD, naive or PE.

    Parameters
    ----------
    problem : Problem
        The images.
    seed : int
        Seed.
    ensemble : {"diffusion", "average", "prompt_mean"}, default="diffusion"
        The paper's RAD, naive and PE.

    Returns
    -------
    ndarray of shape (n_images,)
        Labels.

    Examples
    --------
    >>> from nouncut.paper.baselines.method import Problem
    >>> from nouncut.paper.baselines.ours import ours
    >>> from nouncut.paper.scores import clustering_scores
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(100, 4, n_prompts=2, random_state=0)
    >>> nouns = data.noun_features
    >>> problem = Problem(data.features, data.features, 4, nouns, nouns[0], None, 0.04)
    >>> clustering_scores(data.labels, ours(problem, seed=0)).acc > 0.9
    True
    """
    return _cluster(problem, problem.nouns, seed, ensemble)


def ours_with_prompt(problem: Problem, seed: int, *, prompt: int) -> NDArray[np.intp]:
    """Cluster with one prompt alone.

    Parameters
    ----------
    problem : Problem
        The images.
    seed : int
        Seed.
    prompt : int
        Which one, from 1.

    Returns
    -------
    ndarray of shape (n_images,)
        Labels.
    """
    return _cluster(problem, [single_prompt(problem, prompt)], seed)


def ours_with_gradnorm_nouns(problem: Problem, seed: int) -> NDArray[np.intp]:
    """Cluster with the nouns of GradNorm's filter.

    Parameters
    ----------
    problem : Problem
        The images.
    seed : int
        Seed.

    Returns
    -------
    ndarray of shape (n_images,)
        Labels.
    """
    return _cluster(problem, gradnorm_nouns(problem, seed), seed)


def single_prompt(problem: Problem, prompt: int) -> NDArray[Any]:
    """Return the noun features of one prompt.

    Parameters
    ----------
    problem : Problem
        The images.
    prompt : int
        Which one, from 1.

    Returns
    -------
    ndarray of shape (n_nouns, e)
        Noun features.

    Raises
    ------
    ValueError
        Where the problem has fewer prompts.
    """
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
