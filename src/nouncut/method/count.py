"""The number of clusters of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.checks import warn_user
from nouncut.compute.eigen import Eigenpairs, top_eigenpairs
from nouncut.compute.progress import Progress
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.errors import ParameterError
from nouncut.method.copies import find_originals
from nouncut.method.graphs import choose_neighbors, normalized_mean, symmetric_graphs
from nouncut.method.kernel import Kernel
from nouncut.method.labels import assign_labels, cluster_centers
from nouncut.method.search import search_neighbors

MAX_CLUSTERS = 100
# A cluster has at least this many images.
_SMALLEST_CLUSTER = 5
# Numbers of clusters with a smaller relative difference count as the same answer.
SAME_ANSWER = 0.1
# The mean margin of points without clusters is about this over the root of the number of clusters:
# measured for two clusters; the root was chosen on synthetic data, and is generous for many.
_CHANCE_MARGIN = 0.86
# Scores are means over images, so eigenvectors need few digits.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ClusterCount:
    """A number of clusters, the best candidates with their scores, and a confidence in [0, 1]."""

    n_clusters: int
    candidates: tuple[tuple[int, float], ...]
    confidence: float


def count_images(
    kernel: Kernel,
    n_neighbors: int | None = None,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> ClusterCount:
    """Estimate the number of clusters of images; identical images count as one."""
    distinct = np.unique(find_originals(*kernel.rows))
    q = min(n_neighbors or choose_neighbors(len(distinct)), len(distinct) - 1)
    kernel = kernel.take(distinct)
    found = search_neighbors(kernel, q, n_threads=n_threads, progress=progress)
    graph = normalized_mean(symmetric_graphs(found.neighbors))
    return count_clusters(graph, random_state=random_state, n_threads=n_threads, progress=progress)


def count_clusters(
    graph: csr_array,
    *,
    max_clusters: int = MAX_CLUSTERS,
    n_candidates: int = 5,
    eigenpairs: Eigenpairs | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> ClusterCount:
    """Estimate the number of clusters in a graph, without labels.

    The graph is cut into every number of clusters with the same eigenvectors. The score of a cut is
    the product of three numbers:

    - information: the entropy of the cluster sizes, which grows with the number of clusters;
    - retention: the mean share of a cluster's edges that stay within it;
    - clarity: the mean difference between the cosines to the nearest and the second nearest
      cluster centre in the space of the eigenvectors, scaled from 0 for points without any
      clusters to 1.

    Too few clusters mix classes, so images lie between centres; too many cut through classes. The
    usual criterion, the largest gap between eigenvalues, finds only the coarsest division of
    classes that come in families.

    Parameters
    ----------
    graph : csr_array of shape (n_images, n_images)
        Normalised symmetric graph. Components of fewer than five images are left out.
    max_clusters : int, default=100
        The largest number tried, and never more than a fifth of the images.
    n_candidates : int, default=5
        The most candidates to return.
    eigenpairs : Eigenpairs, optional
        Leading eigenpairs of the graph, if they are known already; their number bounds the number
        of clusters, and no component is left out.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver.
    n_threads : int, default=1
        Threads for the sparse products.
    progress : callable, optional
        Called with the stage, the number of steps done and the total.

    Returns
    -------
    ClusterCount
        The number (1 if there are too few images for two clusters), the best candidates with
        their scores, and the clarity as a confidence.

    Warns
    -----
    UserWarning
        If `max_clusters` itself is the best number: there may be more.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import block_diag, csr_array
    >>> from nouncut.method.graphs import normalize_graph
    >>> from nouncut.method.count import count_clusters
    >>> blocks = block_diag([np.ones((20, 20))] * 3).toarray() + 0.01
    >>> count_clusters(normalize_graph(csr_array(blocks))[0]).n_clusters
    3
    """
    if max_clusters < 1 or n_candidates < 1:
        raise ParameterError("`max_clusters` and `n_candidates` must be at least 1.")
    if eigenpairs is None:
        graph = _without_small_components(graph)
    else:
        max_clusters = min(max_clusters, len(eigenpairs.values))
    largest = min(max_clusters, graph.shape[0] // _SMALLEST_CLUSTER)
    if largest < 2:
        return ClusterCount(1, ((1, 0.0),), 0.0)
    if eigenpairs is None:
        eigenpairs = top_eigenpairs(
            graph,
            largest,
            tol=_TOLERANCE,
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
    numbers = np.arange(2, largest + 1)
    cuts = _judge_cuts(graph, eigenpairs.vectors, numbers, progress)
    scores = cuts.prod(axis=1)
    best = int(np.argmax(scores))
    if numbers[best] == max_clusters > 2:
        warn_user(
            f"The best number of clusters is the largest tried, {max_clusters}: there may be more."
        )
    return ClusterCount(
        int(numbers[best]),
        _distinct_best(numbers, scores, n_candidates),
        float(cuts[best, 2]),
    )


def _without_small_components(graph: csr_array) -> csr_array:
    """Drop the components that are too small for clusters; each would cost an eigenvector."""
    component = connected_components(graph, directed=False)[1]
    kept = np.flatnonzero(np.bincount(component)[component] >= _SMALLEST_CLUSTER)
    return csr_array(graph[kept][:, kept])


def _judge_cuts(
    graph: csr_array,
    vectors: NDArray[np.float64],
    numbers: NDArray[np.intp],
    progress: Progress | None,
) -> NDArray[np.float64]:
    cuts = []
    # A cut into more clusters takes longer, in proportion to their number.
    shares = 100 * np.cumsum(numbers) / numbers.sum()
    for k, share in zip(numbers, shares, strict=True):
        cuts.append(_judge_cut(graph, vectors[:, :k]))
        if progress:
            progress("comparing numbers of groups", int(share), 100)
    return np.array(cuts)


def _judge_cut(graph: csr_array, vectors: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the entropy, retention and clarity of the cut with these eigenvectors."""
    # "discretize" takes several times as long and finds the same numbers.
    labels = assign_labels(vectors, "cluster_qr")
    n, n_clusters = len(labels), int(labels.max()) + 1
    if n_clusters < 2:
        return 0.0, 1.0, 0.0
    sizes = np.bincount(labels) / n
    members = label_matrix(labels, n_clusters)
    between = (members.T @ (graph @ members)).toarray()
    retention = np.diag(between) / np.maximum(between.sum(axis=1), np.finfo(np.float64).tiny)
    directions = unit_rows(vectors)
    cosines = np.partition(directions @ cluster_centers(directions, labels).T, -2, axis=1)
    margin = (cosines[:, -1] - cosines[:, -2]).mean()
    chance = _CHANCE_MARGIN / np.sqrt(n_clusters)
    clarity = np.clip((margin - chance) / (1 - chance), 0, 1)
    return float(-sizes @ np.log(sizes)), float(retention.mean()), float(clarity)


def _distinct_best(
    numbers: NDArray[np.intp], scores: NDArray[np.float64], n_candidates: int
) -> tuple[tuple[int, float], ...]:
    """Return the best numbers, each more than a tenth away from the better ones."""
    chosen: list[tuple[int, float]] = []
    for i in np.argsort(-scores, kind="stable"):
        number = int(numbers[i])
        if all(abs(number - other) > SAME_ANSWER * other for other, _ in chosen):
            chosen.append((number, float(scores[i])))
        if len(chosen) == n_candidates:
            break
    return tuple(chosen)
