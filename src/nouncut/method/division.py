"""Whether a cluster falls apart, and how strongly clusters are linked.

The link of two clusters is the sum of the edges between them, divided by the geometric mean of the
sums within them: 1 if images of both are as close as images of either, 0 without any edge. The same
number says how well a cluster is divided by a cut through it, so parts of a cluster can be
compared with clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.count import SMALLEST_CLUSTER
from nouncut.method.graphs import normalize_graph
from nouncut.method.labels import assign_labels
from nouncut.method.merge import cluster_edges, settle_labels

# The cut is settled along the graph afterwards, so eigenvectors need few digits.
_TOLERANCE = 1e-3


def relative_links(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the links between clusters, with zeros on the diagonal, from `cluster_edges`."""
    within = np.sqrt(np.diag(edges))
    # Clusters without edges have nothing to compare with.
    scale = np.where(within > 0, within, np.inf)
    links = np.minimum(edges / scale / scale[:, None], 1.0)
    np.fill_diagonal(links, 0)
    return np.asarray(links)


def usual_link(edges: NDArray[np.float64]) -> float | None:
    """Return the median link of a cluster to its nearest cluster; None for a single cluster."""
    return float(np.median(relative_links(edges).max(axis=1))) if len(edges) > 1 else None


def bisect(graph: csr_array) -> NDArray[np.intp] | None:
    """Cut a graph in two; None if there are no two parts of a cluster's size.

    Components that are too small for a cluster go with the larger part.
    """
    component = connected_components(graph, directed=False)[1]
    sizes = np.bincount(component)
    is_large = sizes[component] >= SMALLEST_CLUSTER
    if np.count_nonzero(sizes >= SMALLEST_CLUSTER) > 1:
        largest = component == sizes.argmax()
        return np.where(is_large & ~largest, 1, 0)
    kept = np.flatnonzero(is_large)
    if len(kept) < 2 * SMALLEST_CLUSTER:
        return None
    inside = normalize_graph(csr_array(graph[kept][:, kept]))[0]
    labels = settle_labels(inside, assign_labels(_leading_two(inside), "cluster_qr"))
    sizes = np.bincount(labels, minlength=2)
    if sizes.min() < SMALLEST_CLUSTER:
        return None
    halves = np.full(graph.shape[0], sizes.argmax(), dtype=np.intp)
    halves[kept] = labels
    return halves


def _leading_two(graph: csr_array) -> NDArray[np.float64]:
    """Return the two leading eigenvectors of a connected graph.

    For two vectors, Lanczos' method is several times faster than the blocks of `top_eigenpairs`.
    """
    start = np.random.default_rng(0).random(graph.shape[0])
    try:
        values, vectors = eigsh(graph, 2, which="LA", tol=_TOLERANCE, v0=start)
    except ArpackError:
        return top_eigenpairs(graph, 2, tol=_TOLERANCE, random_state=0).vectors
    return np.asarray(vectors[:, np.argsort(-values)])


def half_link(graph: csr_array, halves: NDArray[np.intp]) -> float:
    """Return the link of two halves of a graph."""
    return float(relative_links(cluster_edges(graph, halves))[0, 1])


def divide(graph: csr_array, limit: float | None) -> NDArray[np.intp]:
    """Cut a graph in two, and its parts again, while halves are linked more weakly than a limit.

    Without a limit, it is cut in two. All labels are 0 if it does not fall apart.
    """
    labels = np.zeros(graph.shape[0], dtype=np.intp)
    undecided = [np.arange(len(labels))]
    while undecided:
        rows = undecided.pop()
        part = csr_array(graph[rows][:, rows])
        halves = bisect(part)
        if halves is None or (limit is not None and half_link(part, halves) >= limit):
            continue
        labels[rows[halves == 1]] = labels.max() + 1
        if limit is not None:
            undecided += [rows[halves == 0], rows[halves == 1]]
    return labels
