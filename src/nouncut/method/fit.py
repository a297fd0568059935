"""The method from features, or a graph, to clusters: its stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.eigen import Eigenpairs
from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.method.choices import Assignment, Combination, Rounding, Solver, Symmetry
from nouncut.method.copies import find_originals
from nouncut.method.count import MAX_CLUSTERS, ClusterCount, count_clusters
from nouncut.method.diffusion import DiffusionOptions
from nouncut.method.ensemble import Ensemble, ensemble_graphs
from nouncut.method.footprint import fit_footprint, memory_for_probabilities
from nouncut.method.graphs import (
    add_copies,
    choose_neighbors,
    even_mean,
    excluded_images,
    expand_graph,
    isolated_images,
    normalize_graph,
    normalized_mean,
    symmetric_graphs,
)
from nouncut.method.inputs import check_earlier_labels, check_size, warn_of_excluded
from nouncut.method.kernel import Kernel, shifted_features
from nouncut.method.labels import (
    assign_labels,
    cluster_centers,
    fill_clusters,
    nearest_center,
    order_by_size,
)
from nouncut.method.merge import count_pieces, merge_labels, separating_axes
from nouncut.method.placement import Placement, place_images, place_rows
from nouncut.method.search import search_neighbors
from nouncut.method.stability import label_stability

# The published lambda was chosen on test sets of this size (such as CIFAR-10's).
_LAMBDA_REFERENCE_SIZE = 10_000
# Centred features of few images repel each other: their mean cosine is -1 / (n - 1).
_FEW_IMAGES = 50


@dataclass(frozen=True)
class FitOptions:
    """How to fit: the parameters of `NTKSpectralClustering` that the stages need."""

    n_neighbors: int | None  # None: chosen by `choose_neighbors`
    neighbors: Symmetry
    ensemble: Combination
    solver: Solver
    diffusion: DiffusionOptions
    lam_per_image: bool
    assign_labels: Assignment
    max_memory: float | None
    rng: np.random.RandomState
    n_threads: int
    progress: Progress | None
    earlier_labels: NDArray[Any] | None = None  # -1 for new images


@dataclass(frozen=True)
class Fit:
    """The result of a fit."""

    labels: NDArray[np.intp]  # (n_images,)
    embedding: NDArray[Any]  # (n_images, n_clusters)
    centers: NDArray[np.float64]  # (n_clusters, n_clusters)
    graph: csr_array  # (n_images, n_images)
    isolated: NDArray[np.intp]  # (n_isolated,)
    ensemble: Ensemble
    placement: Placement
    n_neighbors: int
    recall: float
    cluster_count: ClusterCount | None
    originals: NDArray[np.intp]  # (n_images,)
    stability: float = 1.0  # See `label_stability`; 1 for a graph without features.


class ImageGraphs(NamedTuple):
    """The graphs of all prompts, and the number of clusters to cut them into."""

    graphs: list[csr_array]
    n_clusters: int
    n_neighbors: int
    recall: float
    cluster_count: ClusterCount | None  # None if the number of clusters was given


def fit_images(kernel: Kernel, n_clusters: int | str, options: FitOptions) -> Fit:
    """Cluster images by their kernels; copies of an image are one node of the graphs."""
    originals = find_originals(*kernel.rows)
    distinct = np.unique(originals)
    check_earlier_labels(options.earlier_labels, len(originals))
    wanted = check_size(len(originals), len(distinct), n_clusters, options.n_neighbors)
    if options.ensemble == "prompt_mean" and kernel.prompts:
        kernel = kernel._replace(prompts=[np.mean(kernel.prompts, axis=0)])
    if len(distinct) < len(originals):
        kernel = kernel.take(distinct)
        if options.earlier_labels is not None:
            options = replace(options, earlier_labels=options.earlier_labels[distinct])
    return _with_copies(_fit_distinct(kernel, wanted, options), originals)


def fit_graph(graph: csr_array, n_clusters: int | str, options: FitOptions) -> Fit:
    """Cluster the images of a symmetric graph."""
    n_images, count = graph.shape[0], None
    check_earlier_labels(options.earlier_labels, n_images)
    wanted = check_size(n_images, n_images, n_clusters, None)
    if wanted is None:
        count = _count([graph], options)
        wanted = count.n_clusters
    most = int(np.diff(graph.indptr).max(initial=0))
    found = ImageGraphs([graph], wanted, most, 1.0, count)
    cut = _cut(found, options)
    nothing = np.empty((len(cut.images), 0), np.float32)
    placement = _placement(cut, Kernel(nothing, nothing), 1, False)

    def place(images: NDArray[np.intp]) -> NDArray[Any]:
        return place_rows(placement, [csr_array(graph[images][:, cut.images])])

    fit = _label(found, cut, placement, place, n_images, options)
    return _with_copies(fit, fit.originals)


def connect_images(kernel: Kernel, n_clusters: int | None, options: FitOptions) -> ImageGraphs:
    """Return the symmetric graphs of all prompts, and the number of clusters if not given.

    Neighbours are searched once. Clusters are counted in graphs with a number of neighbours that
    suits any number of clusters; the final graphs keep the nearest of the same neighbours.
    """
    n_images, asked = len(kernel.features), options.n_neighbors
    most = min(asked or choose_neighbors(n_images, n_clusters or 1), n_images - 1)
    found = search_neighbors(
        kernel,
        most,
        max_bytes=_memory_for_probabilities(kernel, n_clusters, most, options.max_memory),
        n_threads=options.n_threads,
        progress=options.progress,
    )
    count = None
    if n_clusters is None:
        q = asked or choose_neighbors(n_images)
        count = _count(symmetric_graphs(found.neighbors, q, options.neighbors), options)
        n_clusters = count.n_clusters
    q = min(asked or choose_neighbors(n_images, n_clusters), most)
    graphs = symmetric_graphs(found.neighbors, q, options.neighbors)
    return ImageGraphs(graphs, n_clusters, q, found.recall, count)


def _fit_distinct(kernel: Kernel, n_clusters: int | None, options: FitOptions) -> Fit:
    n_images = len(kernel.features)
    found = connect_images(kernel, n_clusters, options)
    shifted = _has_too_few_edges(found.graphs, found.n_clusters)
    if shifted:
        by_looks = kernel._replace(features=shifted_features(kernel.features))
        found = connect_images(by_looks, n_clusters, options)
    cut = _cut(found, options)
    known = kernel.take(cut.images) if len(cut.images) < n_images else kernel
    suits = max(2, choose_neighbors(n_images, found.n_clusters) // 2)
    placement = _placement(cut, known, min(found.n_neighbors, suits), shifted)

    def place(images: NDArray[np.intp]) -> NDArray[Any]:
        new = kernel.features[images], kernel.semantic[images]
        return place_images(placement, *new, options.n_threads)

    fit = _label(found, cut, placement, place, n_images, options)
    stability = label_stability(kernel, fit.labels, options.rng, options.n_threads)
    return replace(fit, stability=stability)


def _with_copies(fit: Fit, originals: NDArray[np.intp]) -> Fit:
    """Extend the fit of distinct images to all images, and number clusters by size."""
    distinct = np.unique(originals)
    placement = fit.placement._replace(images=distinct[fit.placement.images])
    fit = replace(fit, placement=placement, originals=originals)
    if len(distinct) < len(originals):
        own = np.searchsorted(distinct, originals)
        graph = expand_graph(fit.graph, distinct, len(originals))
        fit = replace(
            fit,
            labels=fit.labels[own],
            embedding=fit.embedding[own],
            isolated=np.flatnonzero(np.isin(own, fit.isolated)),
            graph=add_copies(graph, originals),
        )
    ordered = order_by_size(fit.labels)
    centers = np.empty_like(fit.centers)
    centers[ordered] = fit.centers[fit.labels]
    return replace(fit, labels=ordered, centers=centers)


def _count(graphs: list[csr_array], options: FitOptions) -> ClusterCount:
    return count_clusters(
        normalized_mean(graphs),
        random_state=options.rng,
        n_threads=options.n_threads,
        progress=options.progress,
    )


def _memory_for_probabilities(
    kernel: Kernel, n_clusters: int | None, n_neighbors: int, max_memory: float | None
) -> float | None:
    if max_memory is None:
        return None
    features, semantic, prompts = kernel[:3]
    needed = fit_footprint(
        len(features),
        features.shape[1] + (semantic.shape[1] if semantic is not features else 0),
        n_clusters or MAX_CLUSTERS,
        n_nouns=len(prompts[0]) if prompts else 0,
        n_prompts=len(prompts),
        n_neighbors=n_neighbors,
    )
    return memory_for_probabilities(needed, max_memory)


def _has_too_few_edges(graphs: list[csr_array], n_clusters: int) -> bool:
    """Tell whether few images cannot all be cut, or many have too few edges for their clusters."""
    n_images = graphs[0].shape[0]
    if n_images <= _FEW_IMAGES:
        return len(excluded_images(even_mean(graphs), n_clusters)) > 0
    connected = np.any([np.diff(graph.indptr) > 0 for graph in graphs], axis=0)
    return int(np.count_nonzero(connected)) < n_clusters


class _CutImages(NamedTuple):
    """The images that were cut, their degrees in every graph, the cut, and labels if it has any."""

    images: NDArray[np.intp]
    isolated: NDArray[np.intp]
    degrees: NDArray[np.float64]
    ensemble: Ensemble
    labels: NDArray[np.intp] | None


def _cut(found: ImageGraphs, options: FitOptions) -> _CutImages:
    """Weigh and cut the graphs of the images that can take part."""
    graphs, n_clusters = found.graphs, found.n_clusters
    every_edge, n_images = even_mean(graphs), graphs[0].shape[0]
    if options.ensemble == "average":
        graphs = [every_edge]
    isolated = isolated_images(every_edge)
    images = np.delete(np.arange(n_images), excluded_images(every_edge, n_clusters))
    if len(images) < n_clusters:
        images = np.arange(n_images)
    warn_of_excluded(n_images - len(images), len(isolated), n_images, n_clusters)
    del every_edge
    degrees = []
    # Each normalised graph replaces its original: the graphs of many images fill the memory.
    for number, graph in enumerate(graphs):
        part = graph if len(images) == n_images else graph[images][:, images]
        graphs[number], own = normalize_graph(part)
        degrees.append(own)
    diffusion = options.diffusion
    if options.lam_per_image:
        lam = diffusion.lam * len(images) / _LAMBDA_REFERENCE_SIZE
        diffusion = diffusion._replace(lam=lam)
    n_pieces = n_clusters
    if options.assign_labels == "merge" and options.ensemble != "diffusion":
        n_pieces = count_pieces(len(images), n_clusters)
    ensemble = ensemble_graphs(
        graphs,
        n_pieces,
        diffusion,
        solver=options.solver,
        cut="mean" if options.ensemble == "weighted" else "diffused",
        random_state=options.rng,
        n_threads=options.n_threads,
        progress=options.progress,
    )
    labels = None
    if n_pieces > n_clusters:
        earlier = None if options.earlier_labels is None else options.earlier_labels[images]
        ensemble, labels = _merge(ensemble, n_clusters, options.n_threads, earlier)
    return _CutImages(images, isolated, np.stack(degrees), ensemble, labels)


def _merge(
    ensemble: Ensemble, n_clusters: int, n_threads: int, earlier: NDArray[Any] | None
) -> tuple[Ensemble, NDArray[np.intp]]:
    """Join the pieces of a fine cut; keep one column of its eigenvectors per cluster."""
    cut = ensemble.cut
    values, vectors = cut.eigenpairs
    labels = merge_labels(cut.graph, vectors, n_clusters, n_threads, earlier)
    axes = separating_axes(vectors, labels, n_clusters)
    cut = cut._replace(eigenpairs=Eigenpairs(values[:n_clusters], axes))
    return ensemble._replace(cut=cut), labels


def _placement(cut: _CutImages, known: Kernel, n_neighbors: int, shifted: bool) -> Placement:
    return Placement(
        cut.images,
        known,
        n_neighbors,
        shifted,
        cut.degrees,
        cut.ensemble.prompts.weights,
        cut.ensemble.cut.mean_degrees,
        cut.ensemble.cut.eigenpairs.vectors,
    )


def _label(
    found: ImageGraphs,
    cut: _CutImages,
    placement: Placement,
    place: Callable[[NDArray[np.intp]], NDArray[Any]],
    n_images: int,
    options: FitOptions,
) -> Fit:
    """Turn eigenvectors into labels, and place the images that were not cut."""
    directions = unit_rows(placement.vectors)
    n_clusters = directions.shape[1]
    labels = np.empty(n_images, dtype=np.intp)
    embedding = np.empty((n_images, n_clusters), dtype=directions.dtype)
    embedding[cut.images] = directions
    own = cut.labels
    if own is None:
        how: Rounding = "discretize" if options.assign_labels == "merge" else options.assign_labels
        own = assign_labels(placement.vectors, how, options.rng, options.n_threads)
    own = fill_clusters(directions, own, n_clusters)
    labels[cut.images] = own
    centers = cluster_centers(directions, own)
    if options.progress:
        options.progress("assigning labels", 1, 1)
    rest = np.delete(np.arange(n_images), cut.images)
    if len(rest):
        embedding[rest] = place(rest)
        labels[rest] = nearest_center(embedding[rest], centers)
    return Fit(
        labels=labels,
        embedding=embedding,
        centers=centers,
        graph=expand_graph(cut.ensemble.cut.graph, cut.images, n_images),
        isolated=cut.isolated,
        ensemble=cut.ensemble,
        placement=placement,
        n_neighbors=found.n_neighbors,
        recall=found.recall,
        cluster_count=found.cluster_count,
        originals=np.arange(n_images),
    )
