"""Where t-SNE starts: affinities between images, and initial positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.compute.threads import blas_threads

# Weight of edges between clusters, compared with edges inside a cluster.
_ACROSS = 0.5
# An image without edges gets this many neighbours from its cluster.
_SUBSTITUTES = 5
# Dense eigensolvers are quick up to this size, and they always converge.
_DENSE_SIZE = 2000
# t-SNE starts from a small cloud, so that no image is too far from its neighbours to reach them.
_CLOUD = 1e-2
_JITTER = 0.1


def neighbor_affinities(
    embedding: NDArray[Any], graph: csr_array, labels: NDArray[np.intp]
) -> csr_array:
    """Return symmetric (n, n) affinities to which every image contributes at most one.

    Equal totals keep images in sparse parts of the graph together as well. An image without edges
    is connected to the images of its cluster that are nearest in the embedding.
    """
    shares = csr_array(graph + _substitute_edges(embedding, graph, labels))
    rows = np.repeat(np.arange(len(labels)), np.diff(shares.indptr))
    totals = np.asarray(shares.sum(axis=1)).ravel()
    weights = np.where(labels[rows] == labels[shares.indices], 1.0, _ACROSS)
    shares.data = weights * shares.data / np.maximum(totals[rows], np.finfo(np.float64).tiny)
    return csr_array(shares + shares.T)


def initial_positions(
    embedding: NDArray[Any],
    graph: csr_array,
    labels: NDArray[np.intp],
    rng: np.random.RandomState,
    *,
    n_threads: int = 1,
) -> NDArray[np.float32]:
    """Return the first (n, 2) positions: a projection of the spectral embedding.

    The projection takes the centre of every cluster to its position on a map of the clusters, so
    that an image between two clusters starts between them.
    """
    present, labels = np.unique(labels, return_inverse=True)
    # One BLAS thread makes the map independent of the number of cores.
    with blas_threads(1):
        clusters = _cluster_positions(graph, labels, len(present), rng, n_threads)
        centers = unit_rows(label_matrix(labels).T @ embedding)
        projected = embedding @ (centers.T @ clusters)
    return _small_cloud(projected + _JITTER * clusters.std() * rng.normal(size=projected.shape))


def _substitute_edges(
    embedding: NDArray[Any], graph: csr_array, labels: NDArray[np.intp]
) -> csr_array:
    """Return edges for the images that have none."""
    ends: list[tuple[int, int]] = []
    for image in np.flatnonzero(np.diff(graph.indptr) == 0).tolist():
        others = np.flatnonzero((labels == labels[image]) & (np.arange(len(labels)) != image))
        nearest = np.argsort(-(embedding[others] @ embedding[image]), kind="stable")[:_SUBSTITUTES]
        ends += [(image, other) for other in others[nearest].tolist()]
    pairs = np.array(ends, dtype=np.intp).reshape(-1, 2)
    return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=graph.shape)


def _cluster_positions(
    graph: csr_array,
    labels: NDArray[np.intp],
    n_clusters: int,
    rng: np.random.RandomState,
    n_threads: int,
) -> NDArray[np.float64]:
    """Return a spectral embedding of the clusters in two dimensions."""
    members = label_matrix(labels, n_clusters)
    between = csr_array(members.T @ (graph @ members))
    between.setdiag(0)
    between.eliminate_zeros()
    positions = np.zeros((n_clusters, 2))
    if between.nnz:
        affinities = _normalized(between)
        pairs = top_eigenpairs(
            affinities.toarray() if n_clusters <= _DENSE_SIZE else affinities,
            3,
            tol=1e-3,
            random_state=rng,
            n_threads=n_threads,
        )
        # The first eigenvector holds only the degrees.
        positions[:, : pairs.vectors.shape[1] - 1] = pairs.vectors[:, 1:]
    positions += _JITTER / np.sqrt(n_clusters) * rng.normal(size=positions.shape)
    return positions


def _normalized(graph: csr_array) -> csr_array:
    """Divide every edge by the square roots of its ends' degrees."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    scale = 1 / np.sqrt(np.maximum(degrees, np.finfo(np.float64).tiny))
    return csr_array(graph.multiply(scale[:, None]).multiply(scale))


def _small_cloud(points: NDArray[np.float64]) -> NDArray[np.float32]:
    points = points - points.mean(axis=0)
    scale = _CLOUD / max(points.std(), np.finfo(np.float64).tiny)
    return np.asarray(scale * points, dtype=np.float32)
