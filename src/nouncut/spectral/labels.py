"""From spectral vectors to labels."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from nouncut.affinity import unit_rows

Assignment = Literal["discretize", "cluster_qr", "kmeans"]
_MAX_ROTATIONS = 100
_KMEANS_RESTARTS = 10


def assign_labels(
    vectors: NDArray[Any],
    method: Assignment = "discretize",
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Turn leading eigenvectors into cluster labels.

    Parameters
    ----------
    vectors : ndarray of shape (n_images, n_clusters)
        Orthonormal eigenvectors, as columns.
    method : {"discretize", "cluster_qr", "kmeans"}, default="discretize"
        "discretize" rotates the directions of the rows towards the axes [1]_, starting from the
        rotation of "cluster_qr" [2]_; both are free of chance. "kmeans" groups the directions,
        the best of ten restarts.
    random_state : int, RandomState instance or None, default=None
        Seed of "kmeans".

    Returns
    -------
    ndarray of shape (n_images,)
        Labels, numbered from the largest cluster to the smallest.

    References
    ----------
    .. [1] S. X. Yu, J. Shi, "Multiclass spectral clustering", ICCV 2003,
       :doi:`10.1109/ICCV.2003.1238361`.
    .. [2] A. Damle, V. Minden, L. Ying, "Simple, direct and efficient multi-way spectral
       clustering", Information and Inference 8, 2019, :doi:`10.1093/imaiai/iay008`.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.spectral import assign_labels
    >>> assign_labels(np.array([[0.0, 1.0], [1.0, 0.0], [0.8, 0.6]]))
    array([1, 0, 0])
    """
    if method not in get_args(Assignment):
        raise ValueError(f"assign_labels must be one of {get_args(Assignment)}, not {method!r}.")
    directions = unit_rows(vectors)
    if method == "kmeans":
        kmeans = KMeans(vectors.shape[1], n_init=_KMEANS_RESTARTS, random_state=random_state)
        return order_by_size(kmeans.fit_predict(directions))
    rotation = _pivoted_rotation(vectors)
    if method == "discretize":
        rotation = _discretizing_rotation(directions, rotation)
    return order_by_size(np.argmax(directions @ rotation, axis=1))


def order_by_size(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Renumber clusters from the largest to the smallest, equal ones by their first image.

    Parameters
    ----------
    labels : ndarray of shape (n_images,)
        Any numbering.

    Returns
    -------
    ndarray of shape (n_images,)
        The same clusters as 0, 1, 2, ... without gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.spectral import order_by_size
    >>> order_by_size(np.array([7, 3, 3, 5]))
    array([1, 0, 0, 2])
    """
    _, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(counts), dtype=np.intp)
    rank[np.lexsort((first, -counts))] = np.arange(len(counts))
    return rank[inverse]


def _pivoted_rotation(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the rotation that takes one typical image of every cluster to an axis.

    Pivoting on the rows as they are, not on their directions, picks images in the midst of
    clusters: their rows are the longest.
    """
    pivots = qr(vectors.T, pivoting=True, mode="r")[-1][: vectors.shape[1]]
    left, _, right = np.linalg.svd(vectors[pivots].T)
    return np.asarray(left @ right)


def _discretizing_rotation(directions: NDArray[Any], rotation: NDArray[Any]) -> NDArray[Any]:
    """Alternate between the nearest indicator matrix and the nearest rotation to it."""
    agreement = -np.inf
    for _ in range(_MAX_ROTATIONS):
        labels = np.argmax(directions @ rotation, axis=1)
        left, strength, right = np.linalg.svd(cluster_sums(directions, labels).T)
        if strength.sum() <= agreement * (1 + 1e-9):
            break
        agreement = strength.sum()
        rotation = left @ right
    return rotation


def cluster_sums(rows: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sum of every cluster's rows.

    Parameters
    ----------
    rows : ndarray of shape (n_images, k)
        Vectors.
    labels : ndarray of shape (n_images,)
        Labels below k.

    Returns
    -------
    ndarray of shape (k, k)
        One sum per label; zero for labels that no image has.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.spectral import cluster_sums
    >>> cluster_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 0]))
    array([[4., 6.],
           [0., 0.]])
    """
    n, k = rows.shape
    members = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    return np.asarray(members.T @ rows, dtype=np.float64)
