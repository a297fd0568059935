"""The nearest images and the nearest centre of every image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nouncut.compute.threads import blas_threads, run_tasks

# Similarities held at any one time: 64 MB.
_ENTRIES_AT_ONCE = 2**23
_ROWS_AT_ONCE = 4096

Similarity = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


class NearestImages(NamedTuple):
    """Indices and similarities of every image's neighbours, (n_images, q), nearest first."""

    indices: NDArray[np.intp]
    similarities: NDArray[Any]


def cosine(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return the cosines of unit rows."""
    return np.asarray(rows @ others.T)


def negative_cityblock(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return minus the sums of absolute differences."""
    return -np.asarray(cdist(rows, others, "cityblock"))


def nearest_images(
    features: NDArray[Any], q: int, similarity: Similarity = cosine
) -> NearestImages:
    """Find the q nearest other images of every image."""
    n_images = len(features)
    q = min(q, n_images - 1)
    indices = np.empty((n_images, q), np.intp)
    similarities = np.empty((n_images, q), np.float64)
    step = max(1, _ENTRIES_AT_ONCE // n_images)
    for first in range(0, n_images, step):
        rows = np.arange(first, min(first + step, n_images))
        block = similarity(features[rows], features)
        block[rows - first, rows] = -np.inf
        nearest = np.argpartition(-block, q - 1, axis=1)[:, :q]
        found = np.take_along_axis(block, nearest, axis=1)
        order = np.lexsort((nearest, -found), axis=1)
        indices[rows] = np.take_along_axis(nearest, order, axis=1)
        similarities[rows] = np.take_along_axis(found, order, axis=1)
    return NearestImages(indices, similarities)


class NearestCenters(NamedTuple):
    """The nearest centre of every image, and the cosine with it."""

    labels: NDArray[np.intp]
    cosines: NDArray[np.float32]


def nearest_centers(
    features: NDArray[Any],
    centers: NDArray[Any],
    rows: NDArray[np.intp] | None = None,
    n_threads: int = 1,
) -> NearestCenters:
    """Find the centre with the largest cosine for every image, or for those of some rows.

    Rows and centres have length one.
    """
    n_rows = len(features) if rows is None else len(rows)
    labels = np.empty(n_rows, np.intp)
    cosines = np.empty(n_rows, np.float32)

    def search(first: int) -> None:
        own = slice(first, first + _ROWS_AT_ONCE)
        block = features[own if rows is None else rows[own]] @ centers.T
        labels[own] = block.argmax(axis=1)
        cosines[own] = np.take_along_axis(block, labels[own][:, None], axis=1)[:, 0]

    starts = range(0, n_rows, _ROWS_AT_ONCE)
    if n_threads == 1:
        run_tasks(search, starts, 1)
    else:
        with blas_threads(1):
            run_tasks(search, starts, n_threads)
    return NearestCenters(labels, cosines)
