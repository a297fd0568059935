"""Labels from eigenvectors, and cluster centres in their space."""

from __future__ import annotations

import warnings
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nouncut.compute.checks import check_choice
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.compute.threads import all_threads, blas_threads, run_tasks
from nouncut.method.choices import Rounding

_MAX_ROTATIONS = 100
_KMEANS_RESTARTS = 10
# Above this size pivots come from a sample, k-means starts once, and rotations end a bit earlier.
MANY_ENTRIES = 4_000_000
SAMPLED_PER_CLUSTER = 16
# Labels of many images have settled when fewer than one in 200 changes.
_SETTLED = 200
# From this size on, Newton's iteration is faster than a singular value decomposition.
_LARGE_ROTATION, _NEWTON_STEPS = 200, 20
_ROWS_AT_ONCE = 2048


def assign_labels(
    vectors: NDArray[Any],
    method: Rounding = "discretize",
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> NDArray[np.intp]:
    """Turn leading eigenvectors (n_images, n_clusters) into cluster labels; 0 is the largest."""
    check_choice("assign_labels", method, get_args(Rounding))
    directions = unit_rows(vectors)
    if method == "kmeans" and vectors.size <= MANY_ENTRIES:
        kmeans = KMeans(vectors.shape[1], n_init=_KMEANS_RESTARTS, random_state=random_state)
        return order_by_size(_fit_kmeans(kmeans, directions))
    rotation = pivoted_rotation(vectors)
    if method == "discretize":
        rotation = discretizing_rotation(directions, rotation, n_threads)
    labels = nearest_axis(directions, rotation, n_threads)
    if method == "kmeans":
        start = unit_rows(cluster_sums(directions, labels)).astype(directions.dtype)
        labels = _fit_kmeans(KMeans(len(start), init=start, n_init=1), directions)
    return order_by_size(labels)


def fill_clusters(
    directions: NDArray[Any], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.intp]:
    """Give every cluster at least one image, if there are enough images.

    An empty cluster gets the image that fits its own cluster worst.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    if sizes.all():
        return labels
    labels = labels.copy()
    sums = cluster_sums(directions, labels, n_clusters)
    fit = np.einsum("ij,ij->i", directions, unit_rows(sums)[labels])
    for empty in np.flatnonzero(sizes == 0):
        fit_of_several = np.where(sizes[labels] > 1, fit, np.inf)
        moved = int(np.argmin(fit_of_several))
        sizes[labels[moved]] -= 1
        labels[moved], sizes[empty], fit[moved] = empty, 1, np.inf
    return order_by_size(labels)


def order_by_size(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Renumber clusters from the largest to the smallest, ties by their first image."""
    _, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(counts), dtype=np.intp)
    rank[np.lexsort((first, -counts))] = np.arange(len(counts))
    return rank[inverse]


def cluster_sums(
    rows: NDArray[Any], labels: NDArray[Any], n_clusters: int | None = None
) -> NDArray[np.float64]:
    """Return the sum of every cluster's rows; by default there are as many clusters as columns."""
    members = label_matrix(labels, rows.shape[1] if n_clusters is None else n_clusters)
    return np.asarray(members.T @ rows, dtype=np.float64)


def cluster_centers(embedding: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean direction of every cluster, (n_clusters, n_columns)."""
    return unit_rows(cluster_sums(embedding, labels)[: labels.max() + 1])


def nearest_center(embedding: NDArray[Any], centers: NDArray[Any]) -> NDArray[np.intp]:
    """Return the cluster whose centre is closest in direction to every row."""
    return np.asarray(np.argmax(embedding @ centers.T, axis=1))


def _fit_kmeans(kmeans: KMeans, directions: NDArray[Any]) -> NDArray[np.intp]:
    """Run k-means on one thread: its sums depend on the number of threads."""
    with all_threads(1), warnings.catch_warnings():
        # There may be fewer distinct directions than clusters; empty clusters are filled later.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(kmeans.fit_predict(directions), np.intp)


def pivoted_rotation(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the rotation that takes one typical image of every cluster to an axis.

    Pivots are the longest rows, and images in the middle of a cluster have the longest rows. So we
    pivot on the rows themselves, not on their directions.
    """
    rows = vectors
    if vectors.size > MANY_ENTRIES:
        # A sample that favours long rows contains typical images of every cluster too.
        lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        size = min(len(vectors), SAMPLED_PER_CLUSTER * vectors.shape[1])
        chosen = np.random.default_rng(0).choice(
            len(vectors), size, replace=False, p=lengths / lengths.sum()
        )
        rows = vectors[np.sort(chosen)]
    with blas_threads(1):
        pivots = qr(rows.T, pivoting=True, mode="r")[-1][: rows.shape[1]]
        return _nearest_rotation(rows[pivots].T.astype(np.float64))


def discretizing_rotation(
    directions: NDArray[Any], rotation: NDArray[Any], n_threads: int
) -> NDArray[Any]:
    """Alternate between the nearest indicator matrix and the nearest rotation to it."""
    labels = np.full(len(directions), -1)
    n_unsettled = len(labels) // _SETTLED if directions.size > MANY_ENTRIES else 0
    for _ in range(_MAX_ROTATIONS):
        before, labels = labels, nearest_axis(directions, rotation, n_threads)
        if np.count_nonzero(labels != before) <= n_unsettled:
            break
        with blas_threads(1):
            rotation = _nearest_rotation(cluster_sums(directions, labels).T)
    return rotation


def nearest_axis(
    directions: NDArray[Any], rotation: NDArray[Any], n_threads: int
) -> NDArray[np.intp]:
    """Return the axis that every rotated row is closest to."""
    labels = np.empty(len(directions), dtype=np.intp)
    rotation = rotation.astype(directions.dtype)

    def choose(first: int) -> None:
        rows = slice(first, first + _ROWS_AT_ONCE)
        labels[rows] = np.argmax(directions[rows] @ rotation, axis=1)

    with blas_threads(1):
        run_tasks(choose, range(0, len(directions), _ROWS_AT_ONCE), n_threads)
    return labels


def _nearest_rotation(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the orthogonal factor of the polar decomposition."""
    if len(matrix) > _LARGE_ROTATION:
        rotation = matrix
        for _ in range(_NEWTON_STEPS):
            try:
                inverse = np.linalg.inv(rotation).T
            except np.linalg.LinAlgError:
                break
            # Newton's iteration, scaled to converge from any lengths.
            scale = np.sqrt(np.linalg.norm(inverse) / np.linalg.norm(rotation))
            before, rotation = rotation, (scale * rotation + inverse / scale) / 2
            # Convergence is quadratic.
            if np.linalg.norm(rotation - before) < 1e-6 * len(matrix):
                return np.asarray(rotation)
    # The matrix is small, or singular because an axis has no image.
    left, _, right = np.linalg.svd(matrix)
    return np.asarray(left @ right)
