"""The method on partitions, from features in shards to labels: its stages in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.checks import warn_user
from nouncut.distributed.cells import (
    CHECKED_IMAGES,
    Coupling,
    Layout,
    choose_cells,
    gather_nodes,
    sort_shard,
    split_cells,
    widen_near,
)
from nouncut.distributed.halo import RowGraph
from nouncut.distributed.labels import Labelling, label_nodes
from nouncut.distributed.near import MISSED
from nouncut.distributed.neighbors import (
    find_neighbors,
    measure_recall,
    merge_checked,
    near_file,
)
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.subspace import PartitionedSubspace
from nouncut.distributed.union import cut_off, kept_components, link_components, unite_edges
from nouncut.distributed.visits import bring_home, send_visitors
from nouncut.distributed.weights import (
    STACK,
    PartitionedProblem,
    average,
    leading_vectors,
    normalize,
)
from nouncut.method.diffusion import PUBLISHED, DiffusionOptions, PromptWeights
from nouncut.method.inputs import warn_of_excluded
from nouncut.method.merge import count_pieces
from nouncut.method.spectral_diffusion import settle_weights

# A search that finds less under any prompt is repeated with more candidates and more near cells.
ENOUGH = 1 - MISSED
_MORE, _ATTEMPTS = 2, 3
# Candidates per neighbour: the fewest, and the most of the first attempt.
_FEWEST, _CANDIDATES = 2, 16
CUT = "cut"
# The first cell and the end of every group of every partition.
Groups = list[list[tuple[int, int]]]


class Shards(NamedTuple):
    """The features of all images in files: how many rows each shard has."""

    counts: list[int]

    @property
    def starts(self) -> list[int]:
        """The first image of every shard."""
        return [0, *np.cumsum(self.counts).tolist()][:-1]

    @property
    def n_images(self) -> int:
        """The number of images."""
        return sum(self.counts)


@dataclass(frozen=True)
class FitOptions:
    """How to fit; the parameters of `NTKSpectralClustering` that vary between runs."""

    n_clusters: int
    n_neighbors: int
    seed: int = 0
    n_partitions: int | None = None
    diffusion: DiffusionOptions = PUBLISHED


@dataclass(frozen=True)
class PartitionedFit:
    """Labels and eigenvectors in files, and what describes them."""

    graph: RowGraph  # The graph that was cut.
    layout: Layout
    labelling: Labelling
    vectors: dict[str, Any]  # Where the eigenvectors are.
    prompts: PromptWeights
    spectrum: NDArray[np.float64]
    search: Search
    n_copies: int
    n_excluded: int
    n_isolated: int
    options: FitOptions


def fit_shards(
    engine: Engine, shards: Shards, coupling: Coupling, sizes: Sizes, options: FitOptions
) -> PartitionedFit:
    """Cluster the images of all shards."""
    n_pieces = count_pieces(shards.n_images, options.n_clusters)
    if options.n_partitions:
        sizes = sizes.divided(options.n_partitions, options.n_neighbors, n_pieces)
    layout, n_copies, chosen = _gather(engine, shards, coupling, sizes, options, n_pieces)
    n_nodes = layout.n_nodes
    search = _search(engine, layout, coupling, sizes, options, chosen)
    graph = _unite(engine, layout, search)
    n_excluded, n_isolated = _exclude(graph, options.n_clusters)
    warn_of_excluded(n_excluded, n_isolated, n_nodes, options.n_clusters)
    gram = normalize(graph, "raw", "degrees", STACK)
    n_halo = graph.bundled().n_halo
    # Once, because a resumed run may have other workers, and files hold this number of columns.
    panel = engine.once("panel", lambda: {"columns": sizes.panel(n_nodes, n_halo)})["columns"]
    prompts, values, space = _cut(graph, gram, n_pieces, panel, options)
    cut = graph._replace(folder=CUT)
    vectors = {"folder": space.block, "columns": space.columns[:n_pieces], "transform": None}
    engine.progress("assigning labels", 0, 1)
    labelling = label_nodes(cut, vectors, options.n_clusters, options.seed)
    engine.progress("assigning labels", 1, 1)
    return PartitionedFit(
        cut,
        layout,
        labelling,
        vectors,
        prompts,
        values,
        search,
        n_copies,
        n_excluded,
        n_isolated,
        options,
    )


def _gather(
    engine: Engine,
    shards: Shards,
    coupling: Coupling,
    sizes: Sizes,
    options: FitOptions,
    n_pieces: int,
) -> tuple[Layout, int, Result]:
    """Renumber the images by cells, and split them into partitions.

    Also returns the number of copies, and what `choose_cells` found out.
    """
    plain: dict[str, Any] = {"coupling": coupling._asdict()}
    n_shards = len(shards.counts)
    cells = {"n_shards": n_shards, "n_images": shards.n_images, "n_cells": sizes.cells}
    cells |= {"most_near": sizes.most_near, "q": options.n_neighbors} | plain
    chosen = engine.run("cells", [Task("0", choose_cells, cells)], "finding cells")[0]
    tasks = [
        Task(f"{s:05d}", sort_shard, {"shard": s, "start": start} | plain)
        for s, start in enumerate(shards.starts)
    ]
    engine.run("sort", tasks, "sorting images by cells")
    firsts = np.array(
        engine.once("partitions", lambda: _split(engine, n_shards, sizes, options, n_pieces))[
            "cells"
        ]
    )
    plain |= {"n_shards": n_shards}
    tasks = [
        Task(
            f"{p:05d}",
            gather_nodes,
            {"partition": p, "first_cell": int(a), "last_cell": int(b)} | plain,
        )
        for p, (a, b) in enumerate(pairwise(firsts))
    ]
    found = engine.run("nodes", tasks, "sorting images by cells")
    counts = [count for one in found for count in one["counts"]]
    ends = np.concatenate([[0], np.cumsum(counts)])
    layout = Layout(ends[firsts], ends, firsts)
    engine.once("layout", lambda: _keep_layout(engine, layout))
    engine.storage.remove("sorted")
    return layout, sum(one["n_copies"] for one in found), chosen


def _split(
    engine: Engine, n_shards: int, sizes: Sizes, options: FitOptions, n_pieces: int
) -> Result:
    ends = [engine.storage.read(f"sorted/{s:05d}/ends.npy") for s in range(n_shards)]
    counts = np.sum([np.diff(one) for one in ends], axis=0)
    wanted = options.n_partitions or sizes.partitions(options.n_neighbors, n_pieces)
    return {"cells": split_cells(counts, wanted).tolist()}


def _keep_layout(engine: Engine, layout: Layout) -> Result:
    n_checked = min(layout.n_nodes, CHECKED_IMAGES)
    checked = np.linspace(0, layout.n_nodes - 1, n_checked).astype(np.int64)
    engine.storage.write_several("layout.npz", **layout._asdict())
    engine.storage.write("checked.npy", np.unique(checked))
    return {}


def group_cells(
    layout: Layout, near: NDArray[np.int32], sizes: Sizes, n_candidates: int, q: int
) -> Groups:
    """Split the cells of every partition into groups whose tasks fit in a worker's memory."""
    counts, groups = np.diff(layout.cells), []
    for first, last in pairwise(layout.cell_starts.tolist()):
        ranges, start, around = [], first, np.zeros(len(near), bool)
        n_own = 0
        for cell in range(first, last):
            own = near[cell]
            wider = around.copy()
            wider[own] = True
            n_own += int(counts[cell])
            used = sizes.group_bytes(n_own, int(counts[wider].sum()), n_candidates, q)
            if used > sizes.most_group_bytes and cell > start:
                ranges.append((start, cell))
                start, n_own = cell, int(counts[cell])
                wider = np.zeros_like(around)
                wider[own] = True
            around = wider
        groups.append([*ranges, (start, last)])
    return groups


class Search(NamedTuple):
    """Neighbours in files: those of the last attempt."""

    efforts: list[tuple[int, int]]  # Near cells and candidates per image of every attempt.
    offsets: list[list[int]]  # Where the edges from a partition to every partition begin.
    recall: float

    @property
    def attempt(self) -> int:
        """The number of the last attempt."""
        return len(self.efforts) - 1


def _search(
    engine: Engine,
    layout: Layout,
    coupling: Coupling,
    sizes: Sizes,
    options: FitOptions,
    chosen: Result,
) -> Search:
    """Find neighbours, with more effort as long as the recall is low."""
    q, n_near, places = options.n_neighbors, chosen["near"], chosen["places"]
    n_candidates, efforts = q, []
    if coupling.has_nouns:  # Otherwise the cheap kernel is the exact one.
        n_candidates = min(max(_FEWEST * q, places), _CANDIDATES * q)
    for attempt in range(_ATTEMPTS):
        if attempt:
            n_near, n_candidates = min(sizes.most_near, _MORE * n_near), _MORE * n_candidates
            task = Task("0", widen_near, {"n_near": n_near, "attempt": attempt})
            engine.run(f"near-{attempt}", [task], "finding cells")
        efforts.append((n_near, n_candidates))
        near = engine.storage.read(near_file(attempt))
        groups = group_cells(layout, near, sizes, n_candidates, q)
        plain: dict[str, Any] = {"attempt": attempt, "coupling": coupling._asdict()}
        n_parts = layout.n_partitions
        engine.run_each(f"visits-{attempt}", n_parts, send_visitors, plain, "finding neighbours")
        plain |= {"q": q, "n_candidates": n_candidates, "most_bytes": sizes.probability_bytes}
        tasks = _neighbor_tasks(groups, plain)
        found = engine.run(f"neighbors-{attempt}", tasks, "finding neighbours")
        offsets = _bring_home(engine, layout, groups, found, attempt)
        engine.storage.remove(f"visits-{attempt}")
        measure = partial(_measure, engine, layout, groups, options, attempt)
        recall = engine.once(f"recall-{attempt}", measure)["recall"]
        if recall >= ENOUGH:
            break
    else:
        warn_user(
            f"The search found {recall:.1%} of the nearest images: many are nearly as near as each "
            "other, or prompts disagree about them."
        )
    return Search(efforts, offsets, recall)


def _neighbor_tasks(groups: Groups, plain: dict[str, Any]) -> list[Task]:
    return [
        Task(
            f"{p:05d}-{g:03d}",
            find_neighbors,
            {"partition": p, "group": g, "first_cell": a, "last_cell": b} | plain,
        )
        for p, ranges in enumerate(groups)
        for g, (a, b) in enumerate(ranges)
    ]


def _bring_home(
    engine: Engine, layout: Layout, groups: Groups, found: list[Result], attempt: int
) -> list[list[int]]:
    """Join what nodes have found at home and on visits; return edges between partitions."""
    keys = [f"{p:05d}-{g:03d}" for p, ranges in enumerate(groups) for g in range(len(ranges))]
    tasks = []
    for p, ranges in enumerate(groups):
        visited = [(key, one["offsets"][p : p + 2]) for key, one in zip(keys, found, strict=True)]
        visited = [(key, ends) for key, ends in visited if ends[1] > ends[0]]
        own = [g for g, (a, b) in enumerate(ranges) if layout.cells[b] > layout.cells[a]]
        plain: dict[str, Any] = {"partition": p, "attempt": attempt, "groups": own}
        plain |= {"sources": [key for key, _ in visited], "offsets": [ends for _, ends in visited]}
        tasks.append(Task(f"{p:05d}", bring_home, plain))
    joined = engine.run(f"homes-{attempt}", tasks, "finding neighbours")
    return [one["offsets"] for one in joined]


def _measure(
    engine: Engine,
    layout: Layout,
    groups: Groups,
    options: FitOptions,
    attempt: int,
) -> Result:
    """Compare the neighbours of the checked nodes with their true ones."""
    storage, checked = engine.storage, engine.storage.read("checked.npy")
    parts = [
        storage.read(f"neighbors-{attempt}/{p:05d}-{g:03d}-checked.npy")
        for p, ranges in enumerate(groups)
        for g, (a, b) in enumerate(ranges)
        if layout.cells[b] > layout.cells[a]
    ]
    true = merge_checked(parts, options.n_neighbors)
    found = np.empty(true.shape, np.int32)
    for p, (start, stop) in enumerate(pairwise(layout.starts.tolist())):
        own = np.flatnonzero((checked >= start) & (checked < stop))
        if len(own):
            indices = storage.read_several(f"neighbors-{attempt}/{p:05d}.npz")["indices"]
            found[:, own] = indices[:, checked[own] - start]
    return {"recall": measure_recall(found, true)}


def _unite(engine: Engine, layout: Layout, search: Search) -> RowGraph:
    """Exchange edges, so that every partition has all edges of its nodes."""
    tasks = []
    for p in range(layout.n_partitions):
        incoming = {other: ends[p : p + 2] for other, ends in enumerate(search.offsets)}
        incoming = {
            other: ends for other, ends in incoming.items() if other != p and ends[1] > ends[0]
        }
        plain: dict[str, Any] = {"partition": p, "attempt": search.attempt}
        plain |= {"sources": list(incoming), "offsets": list(incoming.values())}
        tasks.append(Task(f"{p:05d}", unite_edges, plain))
    united = engine.run("union", tasks, "exchanging edges")
    offsets = [one["offsets"] for one in united]
    return RowGraph(engine, "union", layout.starts.tolist(), offsets)


def _exclude(graph: RowGraph, n_clusters: int) -> tuple[int, int]:
    """Leave nodes without edges, and small connected parts, out of the cut."""
    engine, parts = graph.engine, range(graph.n_partitions)
    engine.run_each("components", len(parts), link_components, {}, "exchanging edges")

    def choose() -> Result:
        storage = engine.storage
        sizes = [storage.read(f"links/sizes-{p:05d}.npy") for p in parts]
        links = [storage.read(f"links/{p:05d}.npy") for p in parts]
        keeps, n_excluded, n_isolated = kept_components(sizes, links, n_clusters)
        for p, keep in enumerate(keeps):
            storage.write(f"links/keeps-{p:05d}.npy", keep)
        return {"n_excluded": n_excluded, "n_isolated": n_isolated}

    chosen = engine.once("kept", choose)
    engine.run_each("cut-off", len(parts), cut_off, {}, "exchanging edges")
    return chosen["n_excluded"], chosen["n_isolated"]


def _cut(
    graph: RowGraph, gram: NDArray[np.float64], n_pieces: int, panel: int, options: FitOptions
) -> tuple[PromptWeights, NDArray[np.float64], PartitionedSubspace]:
    """Weigh the graphs of all prompts, and find the eigenvectors of their mean."""
    prompts, weights = PromptWeights.of_one(), np.ones(1)
    start: tuple[NDArray[np.float64], PartitionedSubspace | None] = np.empty(0), None
    if len(gram) > 1:
        problem = PartitionedProblem(
            graph, gram, n_pieces, options.diffusion.mu, panel, options.seed
        )
        prompts, weights = settle_weights(problem, len(gram), options.diffusion)
        start = problem.values, problem.space
    average(graph, weights, "average")
    normalize(graph, "average", "average/degrees", CUT)
    values, space = leading_vectors(
        graph._replace(folder=CUT), CUT, n_pieces, panel, options.seed, start
    )
    return prompts, values, space
