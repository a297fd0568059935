"""The three scores of the paper (NMI, ACC and ARI), and the accuracy of a classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

from nouncut.errors import ParameterError


class ClusteringScores(NamedTuple):
    """How well clusters match classes, as fractions; 1 is perfect."""

    nmi: float
    acc: float
    ari: float


class Result(NamedTuple):
    """The scores of one run of a method, and its seconds."""

    nmi: float
    acc: float
    ari: float
    seconds: float
    # Of a method that names classes: the share of images with the right one, nothing matched.
    plain_acc: float | None = None


def clustering_scores(labels_true: ArrayLike, labels_pred: ArrayLike) -> ClusteringScores:
    """Score clusters against known classes.

    Parameters
    ----------
    labels_true : array-like of shape (n_images,)
        The class of every image: numbers or names.
    labels_pred : array-like of shape (n_images,)
        The cluster of every image. There may be more or fewer clusters than classes; images of
        clusters without a class of their own count as wrong.

    Returns
    -------
    ClusteringScores
        NMI (normalised by the arithmetic mean), ACC (the share of images in the right cluster
        under the best one-to-one match of clusters with classes) and ARI (adjusted for chance).

    Raises
    ------
    ValueError
        If there are no labels, or not as many of one kind as of the other.

    Examples
    --------
    >>> from nouncut.paper.scores import clustering_scores
    >>> clustering_scores(["cat", "cat", "dog", "dog"], [1, 1, 0, 0])
    ClusteringScores(nmi=1.0, acc=1.0, ari=1.0)
    >>> clustering_scores(["cat", "cat", "dog", "dog"], [0, 1, 2, 2]).acc
    0.75
    """
    true, found = _check_labels(labels_true, labels_pred)
    counts = np.asarray(contingency_matrix(true, found))
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return ClusteringScores(
        nmi=float(normalized_mutual_info_score(true, found)),
        acc=float(matched / len(true)),
        ari=float(adjusted_rand_score(true, found)),
    )


def plain_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of images with the right label; clusters are not matched with classes."""
    true, found = _check_labels(labels_true, labels_pred)
    return float(np.mean(true == found))


def _check_labels(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[Any, Any]:
    true: Any = column_or_1d(labels_true)
    found: Any = column_or_1d(labels_pred)
    check_consistent_length(true, found)
    if len(true) == 0:
        raise ParameterError("`labels_true` is empty: there is nothing to score.")
    return true, found
