"""The number of clusters of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.checks import warn_user
from nouncut.compute.eigen import Eigenpairs, top_eigenpairs
from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError
from nouncut.method.copies import find_originals
from nouncut.method.graphs import choose_neighbors, normalized_mean, symmetric_graphs
from nouncut.method.kernel import Kernel
from nouncut.method.labels import assign_labels, cluster_centers
from nouncut.method.merge import (
    cluster_edges,
    cluster_ties,
    join_pieces,
    size_entropy,
)
from nouncut.method.search import search_neighbors

# The eigenvectors of more clusters than this take longer than the rest of a run.
MAX_CLUSTERS = 256
# A cluster has at least this many images.
SMALLEST_CLUSTER = 5
# More clusters are tried only if the best number is above half of this.
_FIRST_LIMIT = 64
# All numbers up to this are tried; larger ones in steps of 6 %.
_TRY_ALL, _STEP = 24, 0.06
# Numbers with a smaller relative difference count as the same answer, or as the same scale.
_SAME_ANSWER, _SAME_SCALE = 0.1, 0.25
# The mean margin of points without clusters is about this over the root of the number of clusters:
# measured for two clusters; the root was chosen on synthetic data, and is generous for many.
_CHANCE_MARGIN = 0.86
# The probability of a number is proportional to this power of its score. Of the powers 3 to 20,
# claims to be right to a tenth were likeliest at 8 or 9 on each of two halves of 216 synthetic sets
# and 18 sets of photographs.
_SHARPNESS = 8.0
# Normal noise scored 0.01 to 0.1, and eight single classes of photographs 0.12 to 0.36.
_NO_CLUSTERS = 0.15
# Other scales are worth naming if they score at least this share of the best.
_GOOD_SHARE = 0.5
# Scores are means over images, so eigenvectors need few digits.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ClusterCount:
    """A number of clusters, the best ones of other scales with their scores, and a confidence.

    The confidence is the probability that the true number is within a tenth of `n_clusters`.
    """

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
    n_candidates: int = 3,
    eigenpairs: Eigenpairs | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> ClusterCount:
    """Estimate the number of clusters in a graph, without labels.

    The graph is cut into every number of clusters in two ways: with as many eigenvectors as
    clusters, and by joining the pieces of a finer cut (`nouncut.method.merge`), which suits uneven
    sizes. The score of a number is a product over both cuts.

    - information, in both: the entropy of the cluster sizes, which grows with the number;
    - retention, in the first: the mean share of a cluster's edges that stay within it;
    - clarity, in the first: the mean difference between the cosines to the nearest and the second
      nearest cluster centre in the space of the eigenvectors, scaled from 0 for points without
      any clusters to 1;
    - margin, in the second, squared: the mean difference between an image's ties to its cluster
      and to the next, over one and two steps along the graph.

    Too few clusters mix classes, so images lie between centres; too many cut through classes. The
    usual criterion, the largest gap between eigenvalues, finds only the coarsest division of
    classes that come in families.

    Parameters
    ----------
    graph : csr_array of shape (n_images, n_images)
        Normalised symmetric graph. Components of fewer than five images are left out.
    max_clusters : int, default=256
        The largest number tried, and never more than a fifth of the images.
    n_candidates : int, default=3
        The most candidates to return; each is the best number of its scale.
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
        The number (1 if there are too few images for two clusters), candidates with their scores,
        and the probability that the number is right to a tenth.

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
    largest = min(max_clusters, graph.shape[0] // SMALLEST_CLUSTER)
    if largest < 2:
        return ClusterCount(1, ((1, 0.0),), 0.0)
    solve = partial(
        top_eigenpairs,
        graph,
        tol=_TOLERANCE,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    numbers, scores = _score_numbers(graph, largest, eigenpairs, solve, progress)
    best = int(np.argmax(scores))
    if numbers[best] == max_clusters > 2:
        warn_user(
            f"The best number of clusters is the largest tried, {max_clusters}: there may be more."
        )
    return ClusterCount(
        int(numbers[best]),
        _best_by_scale(numbers, scores, n_candidates),
        _confidence(numbers, scores),
    )


def _score_numbers(
    graph: csr_array,
    largest: int,
    eigenpairs: Eigenpairs | None,
    solve: Callable[..., Eigenpairs],
    progress: Progress | None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the numbers of clusters that were tried, in ascending order, and their scores."""
    numbers, scores = np.empty(0, dtype=np.intp), np.empty(0)
    pairs = eigenpairs or Eigenpairs(np.empty(0), np.empty((graph.shape[0], 0)))
    for limit in sorted({min(_FIRST_LIMIT, largest), largest}):
        if len(pairs.values) < limit:
            pairs = solve(limit, start=pairs if len(pairs.values) else None)
        new = _numbers_to_try(limit)[len(numbers) :]
        found = _judge_numbers(graph, pairs.vectors[:, :limit], new, progress)
        numbers, scores = np.append(numbers, new), np.append(scores, found)
        if numbers[np.argmax(scores)] <= limit / 2:
            break
    new = _numbers_between(numbers, int(np.argmax(scores)))
    found = _judge_numbers(graph, pairs.vectors[:, : numbers[-1]], new, progress)
    order = np.argsort(np.append(numbers, new))
    return np.append(numbers, new)[order], np.append(scores, found)[order]


def _numbers_to_try(largest: int) -> NDArray[np.intp]:
    numbers = list(range(2, min(largest, _TRY_ALL) + 1))
    while numbers[-1] < largest:
        numbers.append(round(numbers[-1] * (1 + _STEP)))
    # The same numbers for any limit, and the limit itself.
    if numbers[-1] > largest:
        numbers[-1] = largest
    return np.array(numbers, dtype=np.intp)


def _without_small_components(graph: csr_array) -> csr_array:
    """Drop the components that are too small for clusters; each would cost an eigenvector."""
    component = connected_components(graph, directed=False)[1]
    kept = np.flatnonzero(np.bincount(component)[component] >= SMALLEST_CLUSTER)
    return csr_array(graph[kept][:, kept])


def _numbers_between(numbers: NDArray[np.intp], best: int) -> NDArray[np.intp]:
    """Return the numbers that were not tried between the best one and its neighbours."""
    around = numbers[max(0, best - 1) : best + 2]
    return np.setdiff1d(np.arange(around[0], around[-1] + 1), around)


def _judge_numbers(
    graph: csr_array,
    vectors: NDArray[np.float64],
    numbers: NDArray[np.intp],
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Return the score of every number of clusters."""
    if not len(numbers):
        return np.empty(0)
    pieces = assign_labels(vectors, "cluster_qr")
    joins = join_pieces(graph, pieces)
    scores = []
    # A cut into more clusters takes longer, in proportion to their number.
    shares = 100 * np.cumsum(numbers) / numbers.sum()
    for k, share in zip(numbers, shares, strict=True):
        # "discretize" takes several times as long and finds the same numbers.
        cut = assign_labels(vectors[:, :k], "cluster_qr")
        joined = joins.labels(pieces, int(k))
        scores.append(_judge_cut(graph, vectors[:, :k], cut) * _judge_joined(graph, joined))
        if progress:
            progress("comparing numbers of groups", int(share), 100)
    return np.array(scores)


def _judge_cut(graph: csr_array, vectors: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Return entropy times retention times clarity."""
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:
        return 0.0
    edges = cluster_edges(graph, labels)
    retention = np.diag(edges) / np.maximum(edges.sum(axis=1), np.finfo(np.float64).tiny)
    directions = unit_rows(vectors)
    margin = _mean_margin(directions @ cluster_centers(directions, labels).T)
    chance = _CHANCE_MARGIN / np.sqrt(n_clusters)
    clarity = np.clip((margin - chance) / (1 - chance), 0, 1)
    return float(size_entropy(labels) * retention.mean() * clarity)


def _judge_joined(graph: csr_array, labels: NDArray[np.intp]) -> float:
    """Return entropy times the square of the margin between ties."""
    if labels.max() < 1:
        return 0.0
    ties = unit_rows(cluster_ties(graph, labels).toarray())
    return float(size_entropy(ties.argmax(axis=1)) * _mean_margin(ties) ** 2)


def _mean_margin(cosines: NDArray[np.float64]) -> float:
    largest = np.partition(cosines, -2, axis=1)
    return float((largest[:, -1] - largest[:, -2]).mean())


def _confidence(numbers: NDArray[np.intp], scores: NDArray[np.float64]) -> float:
    """Return the probability of the numbers within a tenth of the best one."""
    best = int(np.argmax(scores))
    if not scores[best] > 0:
        return 0.0
    # Before the graph is seen, all numbers are equally likely on a logarithmic scale.
    prior = np.gradient(np.log(numbers)) if len(numbers) > 1 else np.ones(1)
    weights = prior * (scores / scores[best]) ** _SHARPNESS
    none = np.log(2) * (_NO_CLUSTERS / scores[best]) ** _SHARPNESS
    near = np.abs(numbers - numbers[best]) <= _SAME_ANSWER * numbers[best]
    return float(weights[near].sum() / (weights.sum() + none))


def _best_by_scale(
    numbers: NDArray[np.intp], scores: NDArray[np.float64], n_candidates: int
) -> tuple[tuple[int, float], ...]:
    """Return good numbers that are better than all others within a quarter of them."""
    peaks = [
        (int(number), float(score))
        for number, score in zip(numbers, scores, strict=True)
        if score >= scores[np.abs(np.log(numbers / number)) <= np.log1p(_SAME_SCALE)].max()
        and score >= _GOOD_SHARE * scores.max()
    ]
    peaks.sort(key=lambda peak: -peak[1])
    return tuple(peaks[:n_candidates])
