"""Spherical k-means: the baseline that looks at images alone.

scikit-learn's k-means on unit rows assigns by distance to the mean instead of by cosine, and is
less accurate: 94.2 against 95.6 % on imagenette-1k, 68.5 against 69.4 % on scenes-6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.compute.threads import blas_threads, count_threads, run_tasks
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.nearest import NearestCenters, nearest_centers

_RESTARTS = 20
_MAX_ITERATIONS = 300


class SphericalClusters(NamedTuple):
    """Labels, largest cluster first; mean directions; and the sum of cosines with them."""

    labels: NDArray[np.intp]
    centers: NDArray[np.float32]
    score: float


def spherical_kmeans(
    features: NDArray[np.float32], n_clusters: int, random_state: int
) -> SphericalClusters:
    """Cluster unit rows by cosine with mean directions: the best of 20 restarts."""
    seeds = check_random_state(random_state).randint(2**31, size=_RESTARTS)

    def restart(seed: int) -> NearestCenters:
        return _run_once(features, n_clusters, np.random.default_rng(seed))

    with blas_threads(1):
        runs = run_tasks(restart, seeds, count_threads(-1))
    scores = [float(run.cosines.sum(dtype=np.float64)) for run in runs]
    best = int(np.argmax(scores))
    labels = order_by_size(runs[best].labels)
    centers = _mean_directions(features, labels, n_clusters)
    return SphericalClusters(labels, centers, scores[best])


def _run_once(
    features: NDArray[np.float32], n_clusters: int, rng: np.random.Generator
) -> NearestCenters:
    found = nearest_centers(features, _draw_centers(features, n_clusters, rng))
    for _ in range(_MAX_ITERATIONS):
        before = found
        found = nearest_centers(features, _new_centers(features, before, n_clusters))
        if np.array_equal(found.labels, before.labels):
            break
    return found


def _draw_centers(
    features: NDArray[np.float32], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw images as greedy k-means++ does.

    Several images are drawn with a probability in proportion to their squared distance from those
    chosen before; the one that leaves the smallest sum of distances is chosen.
    """
    n_drawn = 2 + int(np.log(n_clusters))
    chosen = [int(rng.integers(len(features)))]
    distances = _half_squared_distances(features, chosen)[0]
    for _ in range(n_clusters - 1):
        total = np.cumsum(distances, dtype=np.float64)
        drawn = np.searchsorted(total, rng.random(n_drawn) * total[-1], side="right")
        drawn = np.minimum(drawn, len(features) - 1)
        remaining = np.minimum(distances, _half_squared_distances(features, drawn))
        best = int(remaining.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        distances = remaining[best]
    return features[chosen]


def _half_squared_distances(features: NDArray[np.float32], rows: Any) -> NDArray[np.float32]:
    return np.asarray(np.maximum(1 - features[rows] @ features.T, 0))


def _new_centers(
    features: NDArray[np.float32], found: NearestCenters, n_clusters: int
) -> NDArray[np.float32]:
    """Return mean directions; an empty cluster starts again at the image that fits worst."""
    centers = _mean_directions(features, found.labels, n_clusters)
    empty = np.flatnonzero(np.bincount(found.labels, minlength=n_clusters) == 0)
    centers[empty] = features[np.argsort(found.cosines, kind="stable")[: len(empty)]]
    return centers


def _mean_directions(
    features: NDArray[np.float32], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.float32]:
    members = label_matrix(labels, n_clusters).astype(np.float32)
    return np.asarray(unit_rows(members.T @ features), dtype=np.float32)
