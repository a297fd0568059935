"""GradNorm: another choice of nouns, then clustering as TAC does."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.paper.baselines.method import Baseline, Problem
from nouncut.paper.baselines.tac import TAC, TAC_TAU
from nouncut.words.filters import positive_nouns


class GradNorm(Baseline):
    """Choose nouns by the norm of their gradient, then cluster as `TAC` does.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    tau : float, default=0.005
        Temperature of the retrieval.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Cluster of every image; 0 is the largest.
    nouns_ : ndarray of shape (n_nouns,)
        Which candidates were chosen.

    Examples
    --------
    >>> from nouncut.paper.baselines.gradnorm import GradNorm
    >>> from nouncut.paper.scores import clustering_scores
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(100, 4, random_state=0)
    >>> model = GradNorm(4, random_state=0)
    >>> labels = model.fit_predict(data.features, candidate_features=data.noun_features[0])
    >>> clustering_scores(data.labels, labels).acc > 0.9
    True
    """

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
        """Cluster images.

        Parameters
        ----------
        X : array-like of shape (n_images, d)
            Image features, of any length.
        y : ignored
            Not used, present for scikit-learn's API.
        candidate_features : array-like of shape (n_candidates, e)
            Features of the nouns to choose from.
        semantic_features : array-like of shape (n_images, e), optional
            Image features to compare with the nouns, where that is another space than X's own.

        Returns
        -------
        GradNorm
            The fitted estimator.
        """
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
    """Return the features of the nouns that GradNorm's filter chooses.

    Parameters
    ----------
    problem : Problem
        The images and the candidates.
    seed : int
        Seed of the filter's k-means.

    Returns
    -------
    list of ndarray of shape (n_nouns, e)
        One array per prompt where the problem has them, else one without a prompt.
    """
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
