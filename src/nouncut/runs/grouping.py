"""From features to groups: how many, which image where, how surely, and what they are called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.method.copies import find_originals
from nouncut.method.count import ClusterCount, count_clusters
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import (
    choose_neighbors,
    even_mean,
    neighbor_graph,
    normalize_graph,
    symmetrize_graph,
)
from nouncut.method.membership import (
    Membership,
    cluster_membership,
    membership_temperature,
    outliers,
)
from nouncut.method.search import search_neighbors
from nouncut.method.temperature import choose_tau
from nouncut.runs.nouns import Candidates, ChosenNouns
from nouncut.runs.settings import Settings
from nouncut.words.names import ClusterName, name_clusters

N_EXEMPLARS = 12
# Photographs of one class have mean cosines of 0.4 to 0.8 under the embedded model; photographs
# and their rescaled copies 0.8 to 0.95.
_ONE_KIND = 0.8


@dataclass(frozen=True)
class Groups:
    """A clustering with all that is told about it."""

    model: NTKSpectralClustering
    names: list[ClusterName]
    membership: Membership
    temperature: float
    outliers: NDArray[np.intp]


def provisional_count(n_images: int) -> int:
    """Return a number of clusters to begin with where nobody knows it."""
    return max(1, round(math.sqrt(n_images / 2)))


def find_count(
    visual: NDArray[Any],
    semantic: NDArray[Any] | None,
    nouns: ChosenNouns | None,
    tau: float | None,
    settings: Settings,
    center: NDArray[Any] | None = None,
    n_jobs: int | None = -1,
) -> ClusterCount:
    """Find how many clusters a collection has."""
    if center is not None:
        alike = _mean_cosine(visual + center)
        if alike > _ONE_KIND:
            return ClusterCount(1, ((1, alike),), alike)
    graph = _mean_graph(visual, semantic, nouns, tau, settings.n_neighbors, n_jobs)
    return count_clusters(graph, random_state=settings.seed, n_threads=count_threads(n_jobs))


def group_images(
    visual: NDArray[Any],
    semantic: NDArray[Any] | None,
    nouns: ChosenNouns | None,
    candidates: Candidates | None,
    n_clusters: int,
    tau: float | None,
    settings: Settings,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Groups:
    """Cluster a collection and name the clusters."""
    model = NTKSpectralClustering(
        n_clusters,
        tau="auto" if tau is None else tau,
        n_neighbors=settings.n_neighbors or "auto",
        solver=settings.solver,
        random_state=settings.seed,
        n_jobs=n_jobs,
    )
    if nouns is None:
        model.fit(visual, progress=progress)
    else:
        model.fit(
            visual,
            semantic_features=semantic,
            noun_features=nouns.features,
            nouns=nouns.words,
            progress=progress,
        )
    temperature = membership_temperature(model.embedding_, model.cluster_centers_)
    return Groups(
        model=model,
        names=_names(model, semantic, candidates),
        membership=cluster_membership(
            model.embedding_,
            model.cluster_centers_,
            labels=model.labels_,
            temperature=temperature,
        ),
        temperature=temperature,
        outliers=_single_outliers(model),
    )


def cohesion(graph: csr_array, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of every cluster's edges that stay within it."""
    within, total = _edges_by_cluster(graph, labels)
    return np.where(total > 0, within / np.where(total > 0, total, 1), 1.0)


def typical_images(
    graph: csr_array, labels: NDArray[Any], hashes: tuple[str, ...] | None = None
) -> list[list[int]]:
    """Return the most typical images of every cluster."""
    order = np.lexsort((-_own_edges(graph, labels), labels))
    ends = np.cumsum(np.bincount(labels))
    return [_without_copies(images, hashes) for images in np.split(order, ends[:-1])]


def borderline_images(membership: Membership) -> list[list[int]]:
    """Return the images of every cluster that belong to it least surely."""
    label, confidence, _, second_confidence = membership
    torn = np.flatnonzero(confidence < 2 * second_confidence)
    found: list[list[int]] = [[] for _ in range(int(label.max()) + 1)]
    for i in torn[np.argsort((confidence - second_confidence)[torn], kind="stable")]:
        if len(found[label[i]]) < N_EXEMPLARS:
            found[label[i]].append(int(i))
    return found


def _mean_cosine(features: NDArray[Any]) -> float:
    """Return the mean cosine of all pairs of rows."""
    n, total = len(features), unit_rows(features).sum(axis=0, dtype=np.float64)
    return float((total @ total - n) / (n * (n - 1)))


def _single_outliers(model: NTKSpectralClustering) -> NDArray[np.intp]:
    """Return the outliers among images of which there is only one copy."""
    found = outliers(model.graph_, model.labels_)
    n_copies = np.bincount(model.originals_, minlength=len(model.originals_))[model.originals_]
    return np.asarray(found[n_copies[found] == 1])


def _names(
    model: NTKSpectralClustering, semantic: NDArray[Any] | None, candidates: Candidates | None
) -> list[ClusterName]:
    if candidates is None or semantic is None:
        return [ClusterName(f"cluster {c + 1}", (), "", 0.0) for c in range(model.n_clusters_)]
    return name_clusters(model.labels_, semantic, candidates.words, candidates.features)


def _mean_graph(
    visual: NDArray[Any],
    semantic: NDArray[Any] | None,
    nouns: ChosenNouns | None,
    tau: float | None,
    n_neighbors: int | None,
    n_jobs: int | None,
) -> csr_array:
    """Return the graph of distinct images in which clusters are counted."""
    images = unit_rows(visual)
    meaning = images if semantic is None else unit_rows(semantic)
    distinct = np.unique(find_originals(images, meaning))
    images = images[distinct]
    directions, prompts = images, []
    if nouns is not None:
        directions, prompts = meaning[distinct], nouns.features
        tau = choose_tau(directions, prompts) if tau is None else tau
    q = n_neighbors or choose_neighbors(len(images))
    found = search_neighbors(
        images,
        directions,
        prompts,
        tau or 1.0,
        min(q, len(images) - 1),
        n_threads=count_threads(n_jobs),
    ).neighbors
    graphs = [symmetrize_graph(neighbor_graph(part, len(images))) for part in found]
    mean = even_mean([normalize_graph(graph)[0] for graph in graphs])
    return normalize_graph(mean)[0]


def _edges_by_cluster(
    graph: csr_array, labels: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n_clusters = int(labels.max()) + 1
    total = np.asarray(graph.sum(axis=1)).ravel()
    within = _own_edges(graph, labels)
    return (
        np.bincount(labels, within, n_clusters).astype(np.float64),
        np.bincount(labels, total, n_clusters).astype(np.float64),
    )


def _own_edges(graph: csr_array, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weight of every image's edges into its own cluster."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    same = labels[rows] == labels[graph.indices]
    return np.bincount(rows[same], graph.data[same], graph.shape[0]).astype(np.float64)


def _without_copies(images: NDArray[np.intp], hashes: tuple[str, ...] | None) -> list[int]:
    if hashes is None:
        return [int(i) for i in images[:N_EXEMPLARS]]
    seen: dict[str, int] = {}
    for i in images:
        seen.setdefault(hashes[i], int(i))
        if len(seen) == N_EXEMPLARS:
            break
    return list(seen.values())
