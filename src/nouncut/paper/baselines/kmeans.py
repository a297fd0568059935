"""Spherical k-means: the baseline that looks at images alone."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import blas_threads, count_threads, run_tasks
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.method import Baseline, unit_array

_ROWS_AT_ONCE = 4096


class SphericalKMeans(Baseline):
    """K-means by cosine: centres are mean directions."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 20,
        max_iter: int = 300,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster images."""
        features = unit_array(X)
        seeds = check_random_state(self.random_state).randint(2**31, size=self.n_init)
        runs: list[_Partition | None] = [None] * self.n_init

        def run(number: int) -> None:
            runs[number] = self._run(features, np.random.default_rng(seeds[number]))

        with blas_threads(1):
            run_tasks(run, range(self.n_init), count_threads(self.n_jobs))
        best = max((found for found in runs if found is not None), key=lambda found: found.score)
        self.labels_ = order_by_size(best.labels)
        self.cluster_centers_ = _mean_directions(features, self.labels_, self.n_clusters)
        self.score_ = best.score
        return self

    def _run(self, features: NDArray[np.float32], rng: np.random.Generator) -> _Partition:
        found = nearest_centers(features, _spread_start(features, self.n_clusters, rng))
        for _ in range(self.max_iter):
            before = found
            found = nearest_centers(features, _filled_centers(features, before, self.n_clusters))
            if np.array_equal(found.labels, before.labels):
                break
        return found


class _Partition(NamedTuple):
    """The nearest centre of every image and the cosine with it."""

    labels: NDArray[np.intp]
    cosines: NDArray[np.float32]

    @property
    def score(self) -> float:
        return float(self.cosines.sum(dtype=np.float64))


def nearest_centers(features: NDArray[Any], centers: NDArray[Any]) -> _Partition:
    """Return the nearest centre of every image and the cosine with it."""
    labels = np.empty(len(features), np.intp)
    cosines = np.empty(len(features), np.float32)
    for first in range(0, len(features), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        products = features[rows] @ centers.T
        labels[rows] = products.argmax(axis=1)
        cosines[rows] = products.max(axis=1)
    return _Partition(labels, cosines)


def _spread_start(
    features: NDArray[np.float32], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw images as greedy k-means++ does.

    The farther an image is from those drawn before, the likelier it is drawn; of several drawn,
    the one that brings all images closest is kept.
    """
    n_drawn = 2 + int(np.log(n_clusters))
    chosen = [int(rng.integers(len(features)))]
    farness = _half_squared_distances(features, chosen)[0]
    for _ in range(n_clusters - 1):
        total = np.cumsum(farness, dtype=np.float64)
        drawn = np.searchsorted(total, rng.random(n_drawn) * total[-1], side="right")
        drawn = np.minimum(drawn, len(features) - 1)
        remaining = np.minimum(farness, _half_squared_distances(features, drawn))
        best = int(remaining.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        farness = remaining[best]
    return features[chosen]


def _half_squared_distances(features: NDArray[np.float32], rows: Any) -> NDArray[np.float32]:
    return np.asarray(np.maximum(1 - features[rows] @ features.T, 0))


def _filled_centers(
    features: NDArray[np.float32], found: _Partition, n_clusters: int
) -> NDArray[np.float32]:
    """Return mean directions; a cluster that has lost its images starts again at the worst one."""
    centers = _mean_directions(features, found.labels, n_clusters)
    empty = np.flatnonzero(np.bincount(found.labels, minlength=n_clusters) == 0)
    centers[empty] = features[np.argsort(found.cosines, kind="stable")[: len(empty)]]
    return centers


def _mean_directions(
    features: NDArray[np.float32], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.float32]:
    n_images = len(features)
    members = csr_array(
        (np.ones(n_images, np.float32), (labels, np.arange(n_images))),
        shape=(n_clusters, n_images),
    )
    return np.asarray(unit_rows(members @ features), dtype=np.float32)
