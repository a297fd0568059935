"""Clusters of uneven sizes: a finer cut whose pieces are joined again along the graph.

The leading eigenvectors of a graph describe its large clusters several times over before they
describe a small one: as many eigenvectors as clusters cut large clusters apart and leave small
ones together. So we cut the graph into more pieces than clusters, join the pieces that belong
together, and let every image move to the cluster of its neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.method.labels import (
    assign_labels,
    cluster_centers,
    cluster_sums,
    nearest_center,
    order_by_size,
)

# Pieces per cluster, the most pieces beyond the clusters, and the fewest images per piece.
_PIECES, _MOST_EXTRA, _IMAGES_PER_PIECE = 3, 100, 5
# Edges between two pieces, divided by this power of their volumes. The normalised cut's 1/2 joins
# every small piece to a large one; average linkage's 1 joins small pieces with each other.
_LINKAGE = 0.75
# An earlier cut stays unless a new one keeps this much more information.
_CLEARLY_MORE = 0.02
# Most labels settle in two rounds.
SETTLING_ROUNDS = 3


class Joins(NamedTuple):
    """Pieces in the order in which they are joined: the second piece becomes part of the first."""

    pairs: NDArray[np.intp]  # (n_pieces - 1, 2)

    def labels(self, pieces: NDArray[np.intp], n_clusters: int) -> NDArray[np.intp]:
        """Return the labels when `n_clusters` are left."""
        n_pieces = len(self.pairs) + 1
        owner = np.arange(n_pieces)
        for kept, joined in self.pairs[: max(0, n_pieces - n_clusters)]:
            owner[owner == joined] = kept
        return np.unique(owner[pieces], return_inverse=True)[1]


def count_pieces(n_images: int, n_clusters: int) -> int:
    """Return the number of pieces to cut before joining; `n_clusters` if there are few images."""
    wanted = min(_PIECES * n_clusters, n_clusters + _MOST_EXTRA, n_images // _IMAGES_PER_PIECE)
    return max(n_clusters, wanted) if n_clusters > 1 else 1


def merge_labels(
    graph: csr_array,
    vectors: NDArray[Any],
    n_clusters: int,
    n_threads: int = 1,
    earlier: NDArray[Any] | None = None,
) -> NDArray[np.intp]:
    """Label images by the better of two cuts of a normalised graph.

    One has as many eigenvectors as clusters; the other joins the pieces of a cut with all
    eigenvectors. The better one has the larger product of the entropy of its cluster sizes and the
    share of the edges within clusters. `earlier` labels, -1 for new images, stay unless the better
    cut is clearly better.
    """
    plain = assign_labels(vectors[:, :n_clusters], n_threads=n_threads)
    pieces = assign_labels(vectors, "cluster_qr", n_threads=n_threads)
    joined = join_pieces(graph, pieces).labels(pieces, n_clusters)
    cuts = [settle_labels(graph, labels) for labels in (plain, joined)]
    best = max(cuts, key=lambda labels: _kept_information(graph, labels))
    if earlier is not None and len(np.unique(earlier[earlier >= 0])) == n_clusters:
        stayed = settle_labels(graph, _continue_labels(vectors, earlier))
        enough = (1 - _CLEARLY_MORE) * _kept_information(graph, best)
        best = stayed if _kept_information(graph, stayed) >= enough else best
    return order_by_size(best)


def _continue_labels(vectors: NDArray[Any], earlier: NDArray[Any]) -> NDArray[np.intp]:
    """Count earlier labels from 0, and give new images the label of the nearest centre."""
    directions, known = unit_rows(vectors), earlier >= 0
    labels = np.empty(len(earlier), dtype=np.intp)
    labels[known] = np.unique(earlier[known], return_inverse=True)[1]
    centers = cluster_centers(directions[known], labels[known])
    labels[~known] = nearest_center(directions[~known], centers)
    return labels


def size_entropy(labels: NDArray[np.intp]) -> float:
    """Return the entropy of the cluster sizes."""
    return entropy(np.bincount(labels))


def entropy(sizes: NDArray[np.intp]) -> float:
    """Return the entropy of sizes, as shares of all."""
    shares = sizes[sizes > 0] / sizes.sum()
    return float(-shares @ np.log(shares))


def _kept_information(graph: csr_array, labels: NDArray[np.intp]) -> float:
    return kept_information(cluster_edges(graph, labels), np.bincount(labels))


def kept_information(edges: NDArray[np.float64], sizes: NDArray[np.intp]) -> float:
    """Return the entropy of cluster sizes times the share of the edges within clusters."""
    return entropy(sizes) * float(np.trace(edges) / max(edges.sum(), 1e-300))


def separating_axes(
    vectors: NDArray[Any], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[Any]:
    """Rotate eigenvectors into the subspace of the mean directions of the clusters."""
    rotation = separating_rotation(cluster_sums(unit_rows(vectors), labels, n_clusters))
    return np.asarray(vectors @ rotation.astype(vectors.dtype))


def separating_rotation(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation of `separating_axes`, given the sum of every cluster's directions."""
    left, _, right = np.linalg.svd(unit_rows(sums), full_matrices=False)
    return np.asarray((left @ right).T)


def join_pieces(graph: csr_array, pieces: NDArray[np.intp]) -> Joins:
    """Join the two pieces with the strongest link until one is left.

    The link of two pieces is the sum of the edges between them, divided by the product of the
    sums of all their edges to the power 3/4.
    """
    return join_linked(cluster_edges(graph, pieces))


def join_linked(edges: NDArray[np.float64]) -> Joins:
    """Join pieces as `join_pieces` does, given the sums of the edges between them."""
    edges = edges.copy()
    n_pieces, volumes = len(edges), edges.sum(axis=1)
    alive = volumes >= 0
    pairs = []
    for _ in range(n_pieces - 1):
        scale = np.where(alive, np.maximum(volumes, np.finfo(np.float64).tiny), np.inf) ** _LINKAGE
        links = edges / scale / scale[:, None]
        links[~alive] = links[:, ~alive] = -1
        np.fill_diagonal(links, -1)
        kept, joined = sorted(np.unravel_index(np.argmax(links), links.shape))
        edges[kept] += edges[joined]
        edges[:, kept] += edges[:, joined]
        volumes[kept] += volumes[joined]
        alive[joined] = False
        pairs.append((kept, joined))
    return Joins(np.array(pairs, dtype=np.intp).reshape(-1, 2))


def cluster_edges(graph: csr_array, labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sum of the edges between every two clusters."""
    members = label_matrix(labels)
    return np.asarray((members.T @ (graph @ members)).toarray())


def settle_labels(graph: csr_array, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Move every image to the cluster to which one and two steps along the graph lead.

    Clusters are unit vectors: 1 over the root of the sum of the cluster's edges. A cluster never
    loses all images.
    """
    for _ in range(SETTLING_ROUNDS):
        ties = cluster_ties(graph, labels)
        moved = strongest_cluster(ties, labels)
        n_clusters = labels.max() + 1
        if np.array_equal(moved, labels) or len(np.unique(moved)) < n_clusters:
            break
        labels = moved
    return labels


def cluster_ties(graph: csr_array, labels: NDArray[np.intp]) -> csr_array:
    """Return how strongly the graph ties every image to every cluster, (n_images, n_clusters)."""
    members = label_matrix(labels)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    members.data = members.data * volume_roots(members.T @ degrees)[members.indices]
    near = graph @ members
    return csr_array(near + graph @ near)


def volume_roots(volumes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lengths of clusters as vectors: 1 over the roots of the sums of their edges."""
    return np.asarray(1 / np.sqrt(np.maximum(volumes, np.finfo(np.float64).tiny)))


def strongest_cluster(ties: csr_array, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the column of the largest entry of every row; the label of an empty row."""
    found = labels.copy()
    rows = np.flatnonzero(np.diff(ties.indptr))
    largest = np.maximum.reduceat(ties.data, ties.indptr[rows])
    is_largest = ties.data == np.repeat(largest, np.diff(ties.indptr)[rows])
    owners = np.repeat(rows, np.diff(ties.indptr)[rows])[is_largest]
    # In reverse, so that the first of equal entries is written last.
    found[owners[::-1]] = ties.indices[is_largest][::-1]
    return found
