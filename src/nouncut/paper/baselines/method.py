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
    """A way to cluster the images of a problem."""

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
    """Check features and scale their rows to length one."""
    return unit_rows(check_array(X, dtype=_FLOATS, input_name=name)).astype(np.float32, copy=False)
