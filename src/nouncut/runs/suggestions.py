"""Pairs of groups that may be one: "are these the same?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import label_matrix
from nouncut.method.division import bisect, half_link, relative_links
from nouncut.method.merge import cluster_edges
from nouncut.words.parent_names import cluster_senses
from nouncut.words.wordnet import broader_synsets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nouncut.runs.run import Run

# Groups are worth asking about if they are at least half as close as the halves of a usual group.
# Chosen among seven limits on the four sets of `benchmarks/suggestions.py`.
_WORTH_ASKING = 0.5
# The median over more clusters would be the same, and take longer.
_CLUSTERS_CUT = 32
_SHOWN_PAIRS = 3
# Second choices of a smaller share of the images are not told.
_WORTH_TELLING = 0.2


@dataclass(frozen=True)
class Suggestion:
    """Two groups that may be one.

    Parameters
    ----------
    clusters : tuple of int
        Their numbers, the larger group first.
    names : tuple of str
        Their names.
    score : float
        How close they are, from 0 to 1: as close as the halves of a usual group of the run.
    reason : str
        What speaks for it.
    pairs : tuple of tuple of int
        Up to three pairs of rows, an image of each group, that are closest.
    """

    clusters: tuple[int, int]
    names: tuple[str, str]
    score: float
    reason: str
    pairs: tuple[tuple[int, int], ...]


def suggest_merges(run: Run, n: int | None = 20) -> list[Suggestion]:
    """Return the pairs of groups that are most likely one; see `Run.suggestions`."""
    numbers, labels = np.unique(run.labels, return_inverse=True)
    if not run.has_array("graph_data") or np.sum(numbers >= 0) < 2:
        return []
    graph = run.graph()
    edges = cluster_edges(graph, labels)
    scores = closeness(run, labels, edges) / run.half_closeness
    scores[numbers < 0] = scores[:, numbers < 0] = 0
    for pair in run.groups.apart:
        first, second = np.searchsorted(numbers, sorted(pair))
        scores[first, second] = scores[second, first] = 0
    pairs = np.argwhere(np.triu(scores >= _WORTH_ASKING, 1))
    best = np.argsort(-scores[tuple(pairs.T)], kind="stable")[:n]
    shares = edges / np.maximum(edges.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
    about = {row["cluster"]: row for row in run.clusters.to_pylist()}
    sizes = np.bincount(labels)
    found = []
    for first, second in pairs[best]:
        large, small = (first, second) if sizes[first] >= sizes[second] else (second, first)
        rows = np.flatnonzero(labels == large), np.flatnonzero(labels == small)
        clusters = int(numbers[large]), int(numbers[small])
        both = about[clusters[0]], about[clusters[1]]
        found.append(
            Suggestion(
                clusters,
                (both[0]["name"], both[1]["name"]),
                min(1.0, float(scores[first, second])),
                _reason(run, both, rows[1], float(shares[small, large])),
                _closest(graph, *rows),
            )
        )
    return found


def half_closeness(run: Run) -> float:
    """Return how close the halves of a computed cluster are, the median over clusters."""
    graph, labels = run.graph(), run.labels
    n_clusters = int(labels.max(initial=-1)) + 1
    found = []
    for cluster in np.linspace(0, n_clusters - 1, min(n_clusters, _CLUSTERS_CUT)).astype(int):
        rows = np.flatnonzero(labels == cluster)
        inside = graph[rows][:, rows]
        halves = bisect(inside)
        if halves is not None:
            alike = likeness(run, rows, halves)[0, 1]
            found.append(np.sqrt(half_link(inside, halves) * alike))
    return float(np.median(found)) if found and np.median(found) > 0 else 1.0


def closeness(
    run: Run, labels: NDArray[np.intp], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the geometric mean of how clusters are linked and how alike their images look."""
    every = np.arange(len(labels))
    return np.asarray(np.sqrt(relative_links(edges) * likeness(run, every, labels)))


def likeness(run: Run, rows: NDArray[np.intp], labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean cosine of images of two clusters, relative to that within them.

    Between 0 and 1; an image is not compared with itself.
    """
    looks = run.search_arrays.looks
    looks = looks if len(rows) == len(looks) else looks[rows]
    sums = np.asarray(label_matrix(labels).astype(np.float32).T @ looks, dtype=np.float64)
    sizes = np.bincount(labels).astype(np.float64)
    products = sums @ sums.T
    within = (np.diag(products) - sizes) / np.maximum(sizes * (sizes - 1), 1)
    # Images that are not alike within a cluster say nothing about others.
    scale = np.where(within > 0, np.sqrt(np.maximum(within, 0)), np.inf) * sizes
    return np.clip(products / scale / scale[:, None], 0, 1)


def _closest(
    graph: csr_array, rows: NDArray[np.intp], others: NDArray[np.intp]
) -> tuple[tuple[int, int], ...]:
    """Return pairs of images of two groups with the strongest links, each image once."""
    links = graph[rows][:, others].tocoo()
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    for place in np.argsort(-links.data, kind="stable"):
        pair = int(rows[links.coords[0][place]]), int(others[links.coords[1][place]])
        if not seen & set(pair):
            found.append(pair)
            seen |= set(pair)
        if len(found) == _SHOWN_PAIRS:
            break
    return tuple(found)


def _reason(
    run: Run, both: tuple[dict[str, Any], dict[str, Any]], small: NDArray[np.intp], share: float
) -> str:
    """Say what speaks for two groups being one; `share` of the links of the small one do."""
    large, _ = both
    choices = run.assignments["second_cluster"].take(small).fill_null(-1).to_numpy()
    chosen = float(np.mean(choices == large["cluster"]))
    parts = [
        _related_names(*both),
        f"the larger group is the second choice of {chosen:.0%} of the smaller one"
        if chosen >= _WORTH_TELLING
        else "",
        f"{share:.0%} of the smaller group's links lead to the larger one",
    ]
    text = "; ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}."


def _related_names(row: dict[str, Any], other: dict[str, Any]) -> str:
    """Say whether the names of two groups mean the same, or one is a kind of the other."""
    # What is only like something has no name of its own.
    if any(one["guess"] or " (like " in one["name"] for one in (row, other)):
        return ""
    senses, others = (
        {sense.id: sense for sense in cluster_senses(one["name"], one["gloss"] or "").synsets}
        for one in (row, other)
    )
    if senses.keys() & others.keys():
        return "their names mean the same"
    above, others_above = broader_synsets(senses.values()), broader_synsets(others.values())
    if above.keys() & others.keys() or others_above.keys() & senses.keys():
        return "one name is a kind of the other"
    return ""
