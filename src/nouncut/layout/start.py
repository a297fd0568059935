"""What a map starts from: who pulls whom, and where everyone is at first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.threads import blas_threads
from nouncut.method.extension import cluster_centers
from nouncut.method.graphs import normalize_graph

# How strongly images of different clusters pull, compared with those of the same.
_ACROSS = 0.5
# An image without edges is tied to so many images of its cluster.
_TIES = 5
# Up to here a dense solve is quick, and nothing in the graph can upset it.
_DENSE_SIZE = 2000
# Maps grow from a small heap, in which everyone is near everyone.
_HEAP = 1e-2
_JITTER = 0.1


def neighbor_pulls(
    embedding: NDArray[Any], graph: csr_array, labels: NDArray[np.intp]
) -> csr_array:
    """Return how strongly images pull each other.

    Every image gives the same amount to its neighbours in all, so that those in loose parts of
    the graph hold together as well. An image without edges is tied to those of its cluster that
    are nearest in the embedding.
    """
    shares = csr_array(graph + _ties(embedding, graph, labels))
    rows = np.repeat(np.arange(len(labels)), np.diff(shares.indptr))
    given = np.asarray(shares.sum(axis=1)).ravel()
    across = np.where(labels[rows] == labels[shares.indices], 1.0, _ACROSS)
    shares.data = across * shares.data / np.maximum(given[rows], np.finfo(np.float64).tiny)
    return csr_array(shares + shares.T)


def starting_points(
    embedding: NDArray[Any],
    graph: csr_array,
    labels: NDArray[np.intp],
    rng: np.random.RandomState,
    *,
    n_threads: int = 1,
) -> NDArray[np.float32]:
    """Return where images are at first: the spectral embedding, projected.

    The projection takes every cluster's centre to the place that the cluster has on a map of
    clusters, so that an image between two clusters starts between their places.
    """
    present, labels = np.unique(labels, return_inverse=True)
    # With one thread for BLAS the map does not depend on how many there are.
    with blas_threads(1):
        places = _cluster_places(graph, labels, len(present), rng, n_threads)
        projected = embedding @ (cluster_centers(embedding, labels).T @ places)
    return _heap(projected + _JITTER * places.std() * rng.normal(size=projected.shape))


def _ties(embedding: NDArray[Any], graph: csr_array, labels: NDArray[np.intp]) -> csr_array:
    ends: list[tuple[int, int]] = []
    for image in np.flatnonzero(np.diff(graph.indptr) == 0).tolist():
        others = np.flatnonzero((labels == labels[image]) & (np.arange(len(labels)) != image))
        nearest = np.argsort(-(embedding[others] @ embedding[image]), kind="stable")[:_TIES]
        ends += [(image, other) for other in others[nearest].tolist()]
    pairs = np.array(ends, dtype=np.intp).reshape(-1, 2)
    return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=graph.shape)


def _cluster_places(
    graph: csr_array,
    labels: NDArray[np.intp],
    n_clusters: int,
    rng: np.random.RandomState,
    n_threads: int,
) -> NDArray[np.float64]:
    """Lay out clusters by the affinities between them."""
    n = len(labels)
    members = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, n_clusters))
    between = csr_array(members.T @ (graph @ members))
    between.setdiag(0)
    between.eliminate_zeros()
    places = np.zeros((n_clusters, 2))
    if between.nnz:
        tied, _ = normalize_graph(between)
        pairs = top_eigenpairs(
            tied.toarray() if n_clusters <= _DENSE_SIZE else tied,
            3,
            tol=1e-3,
            random_state=rng,
            n_threads=n_threads,
        )
        # The first eigenvector of a graph only tells degrees.
        places[:, : pairs.vectors.shape[1] - 1] = pairs.vectors[:, 1:]
    places += _JITTER / np.sqrt(n_clusters) * rng.normal(size=places.shape)
    return places


def _heap(points: NDArray[np.float64]) -> NDArray[np.float32]:
    points = points - points.mean(axis=0)
    scale = _HEAP / max(points.std(), np.finfo(np.float64).tiny)
    return np.asarray(scale * points, dtype=np.float32)
