"""GradNorm: another choice of nouns, then clustering as TAC does."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.paper.baselines.method import Baseline, Problem
from nouncut.paper.baselines.tac import TAC, TAC_TAU
from nouncut.words.filters import positive_nouns


class GradNorm(Baseline):
    """Choose nouns by the norm of their gradient, then cluster as `TAC` does."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        tau: float = TAC_TAU,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.tau = tau
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        candidate_features: ArrayLike,
        semantic_features: ArrayLike | None = None,
    ) -> Self:
        """Cluster images."""
        candidates = np.asarray(candidate_features)
        self.nouns_ = positive_nouns(
            X if semantic_features is None else semantic_features,
            candidates,
            self.n_clusters,
            method="gradnorm",
            random_state=self.random_state,
        )
        model = TAC(self.n_clusters, tau=self.tau, random_state=self.random_state)
        self.labels_ = model.fit_predict(
            X, noun_features=candidates[self.nouns_], semantic_features=semantic_features
        )
        return self


def gradnorm_nouns(problem: Problem, seed: int) -> list[NDArray[Any]]:
    """Return the features of the nouns that GradNorm's filter chooses."""
    if problem.gradnorm_nouns is not None:
        return problem.gradnorm_nouns
    kept = positive_nouns(
        problem.semantic,
        problem.candidates,
        problem.n_clusters,
        method="gradnorm",
        random_state=seed,
    )
    return [problem.candidates[kept]]
