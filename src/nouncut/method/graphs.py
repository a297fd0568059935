"""Sparse graphs: from nearest neighbours to symmetric, normalised affinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.patterns import with_entries
from nouncut.method.neighbors import Neighbors

Symmetry = Literal["union", "mutual"]
# The fewest that hold a cluster together, and the paper's number.
_NEIGHBORS = 2, 30
# Only keeps images without neighbours from dividing by zero; a larger floor would change
# the weights of weakly connected ones.
_TINY_DEGREE = np.finfo(np.float64).tiny


def choose_neighbors(n_images: int, n_clusters: int | None = None) -> int:
    """Choose how many neighbours every image keeps: twice the root of the images per cluster.

    Neighbours should be of the same cluster, so there must be fewer than a cluster has images,
    and enough to hold the cluster together. On made data of 3 to 150 images per cluster the best
    numbers follow this root (``benchmarks/neighbors.py``); the published 30 is reached at 225
    images per cluster and never exceeded.
    """
    if n_clusters is None:
        n_clusters = max(1, round(np.sqrt(n_images / 2)))
    return int(np.clip(round(2 * np.sqrt(n_images / n_clusters)), *_NEIGHBORS))


def neighbor_graph(neighbors: Neighbors, n_columns: int, q: int | None = None) -> csr_array:
    """Return the directed graph in which every image points at its nearest images."""
    indices, values = neighbors.indices[:, :q], neighbors.values[:, :q]
    present = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    if indptr[-1] <= np.iinfo(np.int32).max:
        # Otherwise SciPy widens the indices of every edge as well.
        indptr = indptr.astype(np.int32)
    graph = csr_array(
        (values[present].astype(np.float64), indices[present], indptr),
        shape=(len(present), n_columns),
    )
    graph.sort_indices()
    return graph


def symmetrize_graph(graph: csr_array, neighbors: Symmetry = "union") -> csr_array:
    """Make a directed graph symmetric."""
    if neighbors not in get_args(Symmetry):
        raise ValueError(f'neighbors must be "union" or "mutual", not {neighbors!r}.')
    merge = graph.maximum if neighbors == "union" else graph.minimum
    symmetric = csr_array(merge(graph.T.tocsr()))
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric


def normalize_graph(graph: csr_array) -> tuple[csr_array, NDArray[np.float64]]:
    """Divide every edge by the square roots of its ends' degrees."""
    degrees = _degrees(graph)
    return normalize_rows(graph, degrees), degrees


def isolated_images(graph: csr_array) -> NDArray[np.intp]:
    """Return the images that have no edge."""
    return np.flatnonzero(np.diff(graph.indptr) == 0)


def normalize_rows(rows: csr_array, degrees: NDArray[Any]) -> csr_array:
    """Normalise the edges from new images to the images of a graph."""
    own = np.repeat(_inverse_roots(_degrees(rows)), np.diff(rows.indptr))
    return with_entries(rows, own * rows.data * _inverse_roots(degrees)[rows.indices])


def stray_images(graph: csr_array, n_clusters: int) -> NDArray[np.intp]:
    """Return the images that cannot take part in the cut of a graph.

    These are the images without an edge. Where the graph falls apart into more components than
    there are clusters, every cut between components is free and tells nothing; then the images
    of small components (less than a tenth of an average cluster) are strays too, and so are
    those of all but the `n_clusters` largest.
    """
    n_components, component = connected_components(graph, directed=False)
    sizes = np.bincount(component)
    keeps = sizes > 1
    if keeps.sum() > n_clusters:
        keeps &= sizes >= graph.shape[0] / (10 * n_clusters)
        largest = np.argsort(-sizes, kind="stable")[:n_clusters]
        keeps &= np.isin(np.arange(n_components), largest)
    return np.flatnonzero(~keeps[component])


def mean_graph(graphs: Sequence[csr_array], weights: NDArray[Any]) -> csr_array:
    """Return the weighted sum of sparse graphs."""
    terms = [graph * weight for graph, weight in zip(graphs, weights, strict=True) if weight]
    total = csr_array(sum(terms[1:], start=terms[0]))
    total.sort_indices()
    return total


def even_mean(graphs: Sequence[csr_array]) -> csr_array:
    """Return the mean of sparse graphs."""
    return mean_graph(graphs, np.full(len(graphs), 1 / len(graphs)))


def spread_graph(graph: csr_array, images: NDArray[np.intp], n_images: int) -> csr_array:
    """Write the graph of some images as a graph of all, without edges for the others."""
    counts = np.zeros(n_images, dtype=graph.indptr.dtype)
    counts[images] = np.diff(graph.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((graph.data, images[graph.indices], indptr), shape=(n_images, n_images))


def add_copies(graph: csr_array, originals: NDArray[np.intp]) -> csr_array:
    """Tie every copy to its original by an edge of weight 1."""
    copies = np.flatnonzero(originals != np.arange(len(originals)))
    ends = np.concatenate([copies, originals[copies]]), np.concatenate([originals[copies], copies])
    total = csr_array(graph + csr_array((np.ones(2 * len(copies)), ends), shape=graph.shape))
    total.sort_indices()
    return total


def _degrees(graph: csr_array) -> NDArray[np.float64]:
    return np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / np.sqrt(np.maximum(degrees, _TINY_DEGREE)))
