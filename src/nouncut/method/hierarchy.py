"""Clusters of clusters: average linkage on the cut graph, and the levels that persist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.method.merge import cluster_edges

MAX_LEVELS = 3
# Groups of a level have at least this many clusters on average, and so have those of the next.
_FEWEST_EACH = 2
_ROWS_AT_ONCE = 4096


class Dendrogram(NamedTuple):
    """The joins of all clusters into one, as SciPy's `linkage` returns them."""

    joins: NDArray[np.float64]  # (n_clusters - 1, 4)

    @property
    def n_clusters(self) -> int:
        """The number of clusters that were joined."""
        return len(self.joins) + 1

    def level(self, n_groups: int) -> NDArray[np.intp]:
        """Return the group of every cluster when `n_groups` are left, the first cluster's first."""
        if self.n_clusters == 1:
            return np.zeros(1, dtype=np.intp)
        groups = cut_tree(self.joins, n_clusters=n_groups).ravel()
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.intp)

    def gaps(self) -> NDArray[np.float64]:
        """Return for k = 2, 3, ... groups how much the distance grows before two are joined."""
        return np.diff(self.joins[:, 2])[::-1]


def join_clusters(
    graph: csr_array, labels: NDArray[np.intp], semantic: NDArray[Any] | None = None
) -> Dendrogram:
    """Join the clusters of a graph by average linkage.

    Two clusters are similar if the graph links them strongly (on a logarithmic scale) and if their
    mean `semantic` features agree. Both count alike: each is standardised over all pairs.
    """
    n_clusters = int(labels.max()) + 1
    sums = None if semantic is None else _sums_of_directions(semantic, labels, n_clusters)
    return join_linked_clusters(cluster_edges(graph, labels), sums)


def join_linked_clusters(
    edges: NDArray[np.float64], sums: NDArray[np.float64] | None = None
) -> Dendrogram:
    """Join clusters, given the edges between them and the sums of their semantic directions."""
    if len(edges) < 2:
        return Dendrogram(np.empty((0, 4)))
    similarity = _standardised(_log_links(edges))
    if sums is not None:
        means = unit_rows(sums)
        similarity = similarity + _standardised(means @ means.T)
    distance = similarity.max() - similarity
    np.fill_diagonal(distance, 0)
    return Dendrogram(linkage(squareform(distance, checks=False), "average"))


def persistent_counts(tree: Dendrogram) -> list[int]:
    """Return the numbers of groups that persist, ascending; at most three, and often fewer.

    A number persists if its gap is more than log n times the mean of all n gaps: of n exponential
    gaps, which joins without structure have, about the largest one reaches that. A level has at
    most half as many groups as the next one.
    """
    gaps = tree.gaps()
    if not gaps.size:
        return []
    least = gaps.mean() * max(1.0, np.log(len(gaps)))
    chosen: list[int] = []
    for place in np.argsort(-gaps, kind="stable"):
        n_groups = int(place) + 2
        if len(chosen) == MAX_LEVELS or gaps[place] <= least:
            break
        others = [*chosen, tree.n_clusters]
        if all(max(n_groups, k) >= _FEWEST_EACH * min(n_groups, k) for k in others):
            chosen.append(n_groups)
    return sorted(chosen)


def nested_levels(tree: Dendrogram, counts: Sequence[int] | None = None) -> list[NDArray[np.intp]]:
    """Return the group of every cluster on every level, the coarsest level first.

    `counts` are the numbers of groups, by default those that persist. Counts outside of 2 to one
    less than the clusters make no level.
    """
    wanted = persistent_counts(tree) if counts is None else sorted(set(counts))
    return [tree.level(k) for k in wanted if 1 < k < tree.n_clusters]


def _log_links(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the mean edge between clusters; none counts as half the smallest."""
    volumes = np.maximum(edges.sum(axis=1), np.finfo(np.float64).tiny)
    links = edges / volumes / volumes[:, None]
    np.fill_diagonal(links, 0)
    smallest = links[links > 0].min(initial=np.inf)
    least = smallest / 2 if np.isfinite(smallest) else 1.0
    return np.asarray(np.log(np.maximum(links, least)))


def _sums_of_directions(
    rows: NDArray[Any], labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.float64]:
    """Return the sum of the unit rows of every cluster; the rows may be memory-mapped."""
    sums = np.zeros((n_clusters, rows.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        sums += label_matrix(labels[part], n_clusters).T @ unit_rows(rows[part])
    return sums


def _standardised(similarity: NDArray[Any]) -> NDArray[np.float64]:
    pairs = similarity[np.triu_indices(len(similarity), 1)]
    spread = float(pairs.std())
    # Equal up to rounding, all pairs say nothing.
    if spread <= 1e-9 * float(np.abs(pairs).max()):
        return np.zeros_like(similarity, dtype=np.float64)
    return np.asarray((similarity - pairs.mean()) / spread, dtype=np.float64)
