"""The nearest images of every image, by any measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

# Measures are made for as many rows at a time as give 32 MB.
_ENTRIES_AT_ONCE = 2**23

Measure = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


class Nearest(NamedTuple):
    """The nearest images of every image, nearest first."""

    indices: NDArray[np.intp]
    values: NDArray[Any]


def cosine(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return the inner products of rows: cosines, where they have length one."""
    return np.asarray(rows @ others.T)


def negative_cityblock(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return minus the sums of absolute differences."""
    return -np.asarray(cdist(rows, others, "cityblock"))


def nearest_images(features: NDArray[Any], q: int, measure: Measure = cosine) -> Nearest:
    """Find the q other images that every image is nearest to."""
    n_images = len(features)
    q = min(q, n_images - 1)
    indices = np.empty((n_images, q), np.intp)
    values = np.empty((n_images, q), np.float64)
    step = max(1, _ENTRIES_AT_ONCE // n_images)
    for first in range(0, n_images, step):
        rows = np.arange(first, min(first + step, n_images))
        measures = measure(features[rows], features)
        measures[rows - first, rows] = -np.inf
        nearest = np.argpartition(-measures, q - 1, axis=1)[:, :q]
        found = np.take_along_axis(measures, nearest, axis=1)
        order = np.lexsort((nearest, -found), axis=1)
        indices[rows] = np.take_along_axis(nearest, order, axis=1)
        values[rows] = np.take_along_axis(found, order, axis=1)
    return Nearest(indices, values)
