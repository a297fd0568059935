"""What a method is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_array

from nouncut.compute.rows import unit_rows

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Problem:
    """One data set with one model's features.

    Models of the CLIP family have one space for images and nouns: `visual` and `semantic` are
    then the same array. Where a model has two, images are compared with images by `visual` and
    with nouns by `semantic`, whatever the method.

    Parameters
    ----------
    visual : ndarray of shape (n_images, d)
        What images are compared by; rows of any length.
    semantic : ndarray of shape (n_images, e)
        What is compared with nouns.
    n_clusters : int
        How many clusters are wanted.
    nouns : list of ndarray of shape (n_nouns, e)
        Features of the positive nouns that TAC's filter chose, one array per prompt.
    candidates : ndarray of shape (n_candidates, e)
        Features of all nouns there were to choose from, without a prompt.
    class_features : ndarray of shape (n_clusters, e), optional
        Features of the true classes' names, in the order of labels; for zero-shot alone.
    tau : float, optional
        Temperature of our method; None to choose one without labels.
    gradnorm_nouns : list of ndarray of shape (n_nouns, e), optional
        Features of the positive nouns that GradNorm's filter chose, one array per prompt. Chosen
        from the candidates, without prompts, where left out.

    Examples
    --------
    >>> from nouncut.paper.baselines.method import Problem
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(100, 4, n_prompts=2, random_state=0)
    >>> nouns = data.noun_features
    >>> problem = Problem(data.features, data.features, 4, nouns, nouns[0], None, 0.04)
    >>> len(problem.nouns)
    2
    """

    visual: NDArray[Any]
    semantic: NDArray[Any]
    n_clusters: int
    nouns: list[NDArray[Any]]
    candidates: NDArray[Any]
    class_features: NDArray[Any] | None
    tau: float | None
    gradnorm_nouns: list[NDArray[Any]] | None = None


@dataclass(frozen=True)
class Method:
    """A way to cluster the images of a problem.

    Parameters
    ----------
    name : str
        What it is called on the command line.
    title : str
        What it is called in tables.
    family : str
        Which methods it is listed with: "CLIP", "TAC", "trained" or "ours".
    fit_predict : callable
        Takes a `Problem` and a seed, and returns labels.
    needs_torch : bool, default=False
        Whether it trains a network.
    paper_name : str, optional
        What the paper's tables call it, where they have it.

    Examples
    --------
    >>> from nouncut.paper.baselines.methods import METHODS
    >>> METHODS["clip-kmeans"].title
    'CLIP (KMeans)'
    """

    name: str
    title: str
    family: str
    fit_predict: Callable[[Problem, int], NDArray[np.intp]]
    needs_torch: bool = False
    paper_name: str | None = None


class Baseline(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What all baselines have in common: `fit` leaves ``labels_``, `fit_predict` returns them."""

    labels_: NDArray[np.intp]


def unit_array(X: ArrayLike, name: str = "X") -> NDArray[np.float32]:
    """Check features and scale their rows to length one.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features.
    name : str, default="X"
        What to call them in an error.

    Returns
    -------
    ndarray of shape (n, d)
        Unit rows in float32; rows of zeros stay zero.

    Examples
    --------
    >>> from nouncut.paper.baselines.method import unit_array
    >>> unit_array([[3.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """
    return unit_rows(check_array(X, dtype=_FLOATS, input_name=name)).astype(np.float32, copy=False)
