"""Sparse graphs: from neighbours to symmetric, normalised affinities (Eq. 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.checks import check_choice
from nouncut.compute.sparse import cache_order, entries_in, reorder, with_entries
from nouncut.method.choices import Symmetry
from nouncut.method.neighbors import Neighbors

# The fewest neighbours that hold a cluster together, and the paper's number.
_NEIGHBORS = 2, 30
# Avoids a division by zero for images without neighbours; a larger floor would change the weights
# of weakly connected ones.
_TINY_DEGREE = np.finfo(np.float64).tiny


def provisional_count(n_images: int) -> int:
    """Return a number of clusters to use before the clusters are counted."""
    return max(1, round(math.sqrt(n_images / 2)))


def choose_neighbors(n_images: int, n_clusters: int | None = None) -> int:
    """Return how many neighbours every image keeps: twice the root of the images per cluster.

    Neighbours should belong to the same cluster, so there must be fewer than a cluster has images
    but enough to hold it together. On synthetic data with 3 to 150 images per cluster the best
    numbers follow this root (``benchmarks/neighbors.py``). It reaches the published 30 at 225
    images per cluster and never exceeds it.
    """
    if n_clusters is None:
        n_clusters = provisional_count(n_images)
    return int(np.clip(round(2 * np.sqrt(n_images / n_clusters)), *_NEIGHBORS))


def neighbor_graph(neighbors: Neighbors, n_columns: int, q: int | None = None) -> csr_array:
    """Return the directed graph (n_images, n_columns) of the q nearest images of every image."""
    indices, values = neighbors.indices[:, :q], neighbors.values[:, :q]
    present = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    if indptr[-1] <= np.iinfo(np.int32).max:
        # With 64-bit row pointers SciPy would widen the indices of all edges too.
        indptr = indptr.astype(np.int32)
    graph = csr_array(
        (values[present].astype(np.float64), indices[present], indptr),
        shape=(len(present), n_columns),
    )
    graph.sort_indices()
    return graph


def symmetrize_graph(graph: csr_array, neighbors: Symmetry = "union") -> csr_array:
    """Keep the edges that either image chose ("union") or that both chose ("mutual", Eq. 8)."""
    check_choice("neighbors", neighbors, get_args(Symmetry))
    merge = graph.maximum if neighbors == "union" else graph.minimum
    symmetric = csr_array(merge(graph.T.tocsr()))
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric


def symmetric_graphs(
    found: Sequence[Neighbors], q: int | None = None, neighbors: Symmetry = "union"
) -> list[csr_array]:
    """Return the symmetric graphs of the q nearest images, one per prompt."""
    directed = (neighbor_graph(near, len(near.indices), q) for near in found)
    return [symmetrize_graph(graph, neighbors) for graph in directed]


def normalize_graph(graph: csr_array) -> tuple[csr_array, NDArray[np.float64]]:
    """Return ``D^-1/2 A D^-1/2`` and the degrees."""
    degrees = _degrees(graph)
    return normalize_rows(graph, degrees), degrees


def isolated_images(graph: csr_array) -> NDArray[np.intp]:
    """Return the images that have no edge."""
    return np.flatnonzero(np.diff(graph.indptr) == 0)


def normalize_rows(rows: csr_array, degrees: NDArray[Any]) -> csr_array:
    """Normalise edges from new images (rows) to the images of a graph, given their degrees."""
    own = np.repeat(_inverse_roots(_degrees(rows)), np.diff(rows.indptr))
    return with_entries(rows, own * rows.data * _inverse_roots(degrees)[rows.indices])


def excluded_images(graph: csr_array, n_clusters: int) -> NDArray[np.intp]:
    """Return the images that must be excluded from the cut of a graph.

    These are the images without an edge. If the graph has more components than clusters, every cut
    between components is free and says nothing. Then the images of small components (less than a
    tenth of an average cluster), and of all but the `n_clusters` largest, are excluded too.
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


def normalized_mean(graphs: Sequence[csr_array]) -> csr_array:
    """Normalise graphs, and their mean again: the graph in which clusters are counted."""
    return normalize_graph(even_mean([normalize_graph(graph)[0] for graph in graphs]))[0]


class GraphStack(NamedTuple):
    """Several graphs on one pattern of edges, with the images in an order that suits the cache."""

    order: NDArray[np.intp]
    pattern: csr_array
    edges: NDArray[np.float64]  # (n_graphs, n_edges)

    def mean(self, weights: NDArray[np.float64]) -> csr_array:
        """Return the weighted sum of the graphs."""
        return with_entries(self.pattern, weights @ self.edges)


def stack_graphs(graphs: Sequence[csr_array], n_threads: int = 1) -> GraphStack:
    """Put graphs on a common pattern of edges."""
    union = even_mean(graphs)
    union.sort_indices()
    edges = entries_in(union, graphs, n_threads)
    order = cache_order(union)
    pattern = reorder(with_entries(union, np.arange(union.nnz)), order)
    for own in edges:
        own[:] = own[pattern.data]
    return GraphStack(order, pattern, edges)


def expand_graph(graph: csr_array, images: NDArray[np.intp], n_images: int) -> csr_array:
    """Return the graph of some images as a graph of all; the others have no edges."""
    counts = np.zeros(n_images, dtype=graph.indptr.dtype)
    counts[images] = np.diff(graph.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((graph.data, images[graph.indices], indptr), shape=(n_images, n_images))


def add_copies(graph: csr_array, originals: NDArray[np.intp]) -> csr_array:
    """Connect every copy to its original with an edge of weight 1."""
    copies = np.flatnonzero(originals != np.arange(len(originals)))
    ends = np.concatenate([copies, originals[copies]]), np.concatenate([originals[copies], copies])
    total = csr_array(graph + csr_array((np.ones(2 * len(copies)), ends), shape=graph.shape))
    total.sort_indices()
    return total


def _degrees(graph: csr_array) -> NDArray[np.float64]:
    return np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / np.sqrt(np.maximum(degrees, _TINY_DEGREE)))
