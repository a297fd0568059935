"""Cluster centres in an embedding, and new images between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.labels import cluster_sums


def extend_embedding(rows: csr_array, vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the directions of new images in the embedding of a graph.

    An image lies in the mean direction of its neighbours. Nystroem's formula would divide every
    coordinate by its eigenvalue; those of small clusters are tiny, and what is divided by them is
    mostly noise.

    Parameters
    ----------
    rows : csr_array of shape (n_new, n)
        Normalised edges from new images to the images of the graph.
    vectors : ndarray of shape (n, k)
        Leading eigenvectors of the graph, as columns.

    Returns
    -------
    ndarray of shape (n_new, k)
        Unit rows; zero for images without an edge.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.extension import extend_embedding
    >>> extend_embedding(csr_array(np.array([[0.3, 0.4]])), np.eye(2))
    array([[0.6, 0.8]])
    """
    return np.asarray(unit_rows(rows @ vectors.astype(np.float64)))


def cluster_centers(embedding: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean direction of every cluster.

    Parameters
    ----------
    embedding : ndarray of shape (n_images, k)
        Unit rows.
    labels : ndarray of shape (n_images,)
        Labels 0 to n_clusters - 1, at most k of them.

    Returns
    -------
    ndarray of shape (n_clusters, k)
        Unit rows.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.extension import cluster_centers
    >>> cluster_centers(np.array([[0.6, 0.8], [0.6, -0.8]]), np.array([0, 0]))
    array([[1., 0.]])
    """
    return unit_rows(cluster_sums(embedding, labels)[: labels.max() + 1])


def nearest_center(embedding: NDArray[Any], centers: NDArray[Any]) -> NDArray[np.intp]:
    """Return the cluster whose direction is closest to every row.

    Parameters
    ----------
    embedding : ndarray of shape (n_images, k)
        Unit rows.
    centers : ndarray of shape (n_clusters, k)
        Unit rows.

    Returns
    -------
    ndarray of shape (n_images,)
        Labels; rows of zeros go to the first (largest) cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.extension import nearest_center
    >>> nearest_center(np.array([[0.6, 0.8], [0.0, 0.0]]), np.eye(2))
    array([1, 0])
    """
    return np.asarray(np.argmax(embedding @ centers.T, axis=1))
