"""The tables of a run with too many images for one machine's memory, in parts.

Every partition reduces what it knows to a few numbers per cluster; one task per shard writes its
part of the tables. Only a sample has all arrays (`nouncut.distributed.sampling`).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.distributed.cells import Coupling
from nouncut.distributed.choices import Choices
from nouncut.distributed.coarsen import COARSE, MicroClusters
from nouncut.distributed.contents import Source, read_model_rows
from nouncut.distributed.fit import PartitionedFit, Shards
from nouncut.distributed.halo import sum_files
from nouncut.distributed.members import describe_part, write_part
from nouncut.distributed.placing import Placing, place_all, read_placed
from nouncut.distributed.result import Finished
from nouncut.distributed.sampling import Nodes, choose_sample, keep_features, sample_contents
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.method.hierarchy import join_linked_clusters, nested_levels
from nouncut.method.membership import outlier_level
from nouncut.runs.collection import Collection
from nouncut.runs.exemplars import N_EXEMPLARS
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.naming import name_groups
from nouncut.runs.tables import (
    ASSIGNMENTS_SCHEMA,
    CLUSTERS_SCHEMA,
    IMAGES_SCHEMA,
    table_of,
)
from nouncut.runs.vocabulary import chosen_filter
from nouncut.runs.writer import RunContents
from nouncut.words.cluster_names import ClusterName
from nouncut.words.evidence import IMAGES_PER_CLUSTER

# Images of every cluster that a partition lists.
_LISTS = ("typical", "borderline", "named")
# Up to this number of images, a run has whole tables and all arrays.
LARGEST_WHOLE = 500_000


def assemble_large_run(
    fit: PartitionedFit,
    finished: Finished,
    choices: Choices,
    source: Source,
    scratch: Path,
    job: Job,
    micro: MicroClusters | None = None,
) -> RunContents:
    """Write the parts of the tables, and gather the rest of what is written to the directory.

    With micro-clusters, the fit is theirs, and images are placed among them.
    """
    engine, n_clusters = fit.graph.engine, len(finished.centers)
    storage, n_parts = engine.storage, fit.graph.n_partitions
    found = _describe(
        fit,
        finished,
        micro.coupling if micro else Coupling(**choices.coupling),
        micro.shards if micro else source.shards,
    )
    parts = [storage.read_several(f"members/{p:05d}.npz") for p in range(n_parts)]
    whole, cut, order = engine, Nodes(fit, finished), np.arange(n_clusters)
    if micro:
        whole, (cut, parts, order) = micro.engine, _place_images(micro, source, choices, cut, parts)
        finished = cut.finished
    names = _name(whole.storage, parts, n_clusters, choices, source, job)
    level = outlier_level(np.concatenate([part["fits"] for part in parts]))
    tables = _write_tables(whole, source.shards, found, names, level, cut.prefix, order)
    files = _download(whole.storage, source.shards, scratch, keep_features(whole, source, choices))
    edges = sum_files(storage, "members/edges-{p:05d}.npy", n_parts)[np.ix_(order, order)]
    sums = np.sum([part["sums"] for part in parts], axis=0)[order] if source.model else None
    levels = nested_levels(join_linked_clusters(edges, sums), job.settings.levels)
    manifest = _manifest(fit, finished, choices, source, job) | {
        "n_outliers": sum(one["n_outliers"] for one in tables),
        "tree": {"sizes": finished.sizes.tolist(), "levels": [one.tolist() for one in levels]},
    }
    if micro:
        about = {"number": micro.shards.n_images, "mean_cosine": micro.cosine}
        manifest |= {"micro_clusters": about, "n_copies": 0}
    clusters = _clusters_table(names, finished, edges, parts)
    rows = _sampled_rows(source, clusters, parts, tables)
    return RunContents(
        manifest,
        ASSIGNMENTS_SCHEMA.empty_table(),
        clusters,
        IMAGES_SCHEMA.empty_table(),
        parts=files,
        sample=sample_contents(whole, rows, cut, choices, source, files, clusters, job),
    )


def _describe(
    fit: PartitionedFit, finished: Finished, coupling: Coupling, nodes: Shards
) -> list[Result]:
    """Let every partition describe its images and its clusters."""
    engine = fit.graph.engine
    engine.storage.write("members/centers.npy", finished.centers)
    plain = {
        "n_clusters": len(finished.centers),
        "temperature": finished.temperature,
        "shards": [*nodes.starts, nodes.n_images],
        "folder": fit.graph.folder,
        "coupling": coupling._asdict(),
    }
    n_parts = fit.graph.n_partitions
    return engine.run_each("members", n_parts, describe_part, plain, "collecting results")


def _sampled_rows(
    source: Source, clusters: pa.Table, parts: list[dict[str, Any]], tables: list[Result]
) -> NDArray[np.int64]:
    """Choose the images that have arrays; those that the report shows are among them."""
    named = np.concatenate([part["named"] for part in parts])
    shown = [rows for name in ("exemplars", "borderline") for rows in clusters[name].to_pylist()]
    shown += [one["outliers"] for one in tables]
    rows = np.array([row for some in shown for row in some], np.int64)
    return choose_sample(source.shards.n_images, named, rows, len(clusters))


def _place_images(
    micro: MicroClusters,
    source: Source,
    choices: Choices,
    cut: Nodes,
    parts: list[dict[str, Any]],
) -> tuple[Nodes, list[dict[str, Any]], NDArray[np.intp]]:
    """Place images among the micro-clusters that were cut, and list images instead of these.

    Clusters are numbered by size again; also returns their earlier numbers.
    """
    storage, shards, n_clusters = micro.engine.storage, source.shards, len(cut.finished.centers)
    placing = Placing.of(cut.fit, cut.finished, Coupling(**choices.coupling))
    parts = _with_images(storage, shards, micro.shards, parts)
    typical = [rows[0] for rows in _best(parts, "typical", n_clusters)]
    sizes = place_all(micro, shards, cut.fit, placing, typical)
    order = np.argsort(-sizes, kind="stable")
    finished = replace(cut.finished, sizes=sizes[order], centers=cut.finished.centers[order])
    placed = Nodes(cut.fit, finished, f"{COARSE}/", tuple(micro.shards.starts), placing)
    return placed, _as_placed(storage, shards, parts, typical, np.argsort(order)), order


def _with_images(
    storage: Storage, shards: Shards, micro: Shards, parts: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Replace the micro-clusters that partitions list by their most typical images."""
    ids = _listed(parts)[:, 1]
    rows = np.empty_like(ids)
    for shard, own in _of_shards(micro, ids):
        typical = storage.read(f"{COARSE}/typical/{shard:05d}.npy")
        rows[own] = shards.starts[shard] + typical[ids[own] - micro.starts[shard]]
    changed, first = [dict(part) for part in parts], 0
    for part in changed:
        for name in _LISTS:
            part[name] = part[name].copy()
            part[name][:, 1] = rows[first : first + len(part[name])]
            first += len(part[name])
    return changed


def _as_placed(
    storage: Storage,
    shards: Shards,
    parts: list[dict[str, Any]],
    typical: list[int],
    rank: NDArray[np.intp],
) -> list[dict[str, Any]]:
    """Keep the listed images that were placed in the clusters that they are to show.

    The `typical` image of every cluster was, so that each has an image to be named by. Clusters get
    the numbers in `rank`.
    """
    clusters, rows = _listed(parts).T
    is_there = np.empty(len(rows), bool)
    for shard, own in _of_shards(shards, rows):
        labels = read_placed(storage, shard).label
        is_there[own] = labels[rows[own] - shards.starts[shard]] == clusters[own]
    placed, first = [dict(part) for part in parts], 0
    for part in placed:
        for name in _LISTS:
            kept = is_there[first : first + len(part[name])]
            first += len(part[name])
            part[name] = part[name][kept]
            part[name][:, 0] = rank[part[name][:, 0].astype(np.intp)]
    always = np.stack([rank, typical], axis=1)
    placed[0]["named"] = np.concatenate([placed[0]["named"], always])
    return placed


def _listed(parts: list[dict[str, Any]]) -> NDArray[np.int64]:
    """Return the cluster and the number of everything that partitions list."""
    tables = [part[name][:, :2] for part in parts for name in _LISTS]
    return np.concatenate(tables).astype(np.int64)


def _of_shards(shards: Shards, ids: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield the shards of some images, and which images are in each."""
    owners = np.searchsorted(shards.starts, ids, side="right") - 1
    for shard in np.unique(owners).tolist():
        yield shard, owners == shard


def _best(parts: list[dict[str, Any]], name: str, n_clusters: int) -> list[list[int]]:
    """Return the images with the lowest scores of every cluster over all partitions."""
    every = np.concatenate([part[name] for part in parts])
    every = every[np.lexsort((every[:, 1], every[:, 2], every[:, 0]))]
    return [
        every[every[:, 0] == cluster, 1][:N_EXEMPLARS].astype(int).tolist()
        for cluster in range(n_clusters)
    ]


def _name(
    storage: Storage,
    parts: list[dict[str, Any]],
    n_clusters: int,
    choices: Choices,
    source: Source,
    job: Job,
) -> list[ClusterName]:
    """Name clusters by some of their images."""
    every = np.unique(np.concatenate([part["named"] for part in parts]), axis=0)
    chosen = []
    for cluster in range(n_clusters):
        own = every[every[:, 0] == cluster]
        at = np.linspace(0, len(own) - 1, min(len(own), IMAGES_PER_CLUSTER)).astype(int)
        chosen.append(own[np.unique(at)])
    some = np.concatenate(chosen)
    some = some[np.argsort(some[:, 1])]
    labels, rows = some[:, 0], some[:, 1]
    images = ImageSet(tuple(map(str, rows)), None, ())
    how = Coupling(**choices.coupling)
    read = read_model_rows(storage, source.shards, "semantic" if how.has_semantic else "features")
    semantic = read(rows) if source.model is not None else None
    kept = "rows" if storage.size("rows/00000.npy") is not None else "features"
    raw = read_model_rows(storage, source.shards, kept)
    collection = Collection(
        "features",
        images,
        np.empty((len(rows), 0), np.float32),
        semantic,
        model=source.model,
        rows=lambda members: raw(rows[members]),
    )
    with job.timed("naming groups"):
        return name_groups(labels, n_clusters, collection, source.vocabulary, job)


def _write_tables(
    engine: Engine,
    shards: Shards,
    found: list[Result],
    names: list[ClusterName],
    level: float,
    prefix: str,
    order: NDArray[np.intp],
) -> list[Result]:
    engine.storage.write_json("members/names.json", [name.name for name in names])
    tasks = [
        Task(
            f"{shard:05d}",
            write_part,
            {
                "shard": shard,
                "start": start,
                "offsets": [one["offsets"][shard : shard + 2] for one in found],
                "level": level,
                "prefix": prefix,
                "rank": np.argsort(order).tolist(),
            },
        )
        for shard, start in enumerate(shards.starts)
    ]
    return engine.run("tables", tasks, "writing the run")


def _download(
    storage: Storage, shards: Shards, scratch: Path, kept: list[str]
) -> dict[str, list[Path]]:
    """Copy the parts of tables and features here; skipped files come after all images."""
    scratch.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Path]] = {"assignments": [], "images": []}
    for name in kept:
        found[name] = [scratch / f"{name}-{shard:05d}.npy" for shard in range(len(shards.counts))]
        for path in found[name]:
            path.write_bytes(storage.read_bytes(f"tables/{path.name}"))
    for name in ("assignments", "images", "skipped"):
        for shard in range(len(shards.counts)):
            path = scratch / f"{name}-{shard:05d}.parquet"
            path.write_bytes(storage.read_bytes(f"tables/{path.name}"))
            if name != "skipped" or pq.read_metadata(path).num_rows:
                found["images" if name == "skipped" else name].append(path)
    return found


def _clusters_table(
    names: list[ClusterName],
    finished: Finished,
    edges: NDArray[np.float64],
    parts: list[dict[str, Any]],
) -> pa.Table:
    totals = edges.sum(axis=1)
    columns = {
        "cluster": np.arange(len(names)),
        "name": [name.name for name in names],
        "more_words": [list(name.more_words) for name in names],
        "gloss": [name.gloss for name in names],
        "name_confidence": [name.confidence for name in names],
        "guess": [name.guess for name in names],
        "size": finished.sizes,
        "cohesion": np.where(totals > 0, np.diag(edges) / np.where(totals > 0, totals, 1), 1.0),
        "exemplars": _best(parts, "typical", len(names)),
        "borderline": _best(parts, "borderline", len(names)),
    }
    return table_of(columns, CLUSTERS_SCHEMA)


def _manifest(
    fit: PartitionedFit, finished: Finished, choices: Choices, source: Source, job: Job
) -> dict[str, Any]:
    """Return the fields that describe the result, as `nouncut.runs.contents.result_manifest`."""
    how, settings = Coupling(**choices.coupling), job.settings
    encoder = source.model and source.model.encoder
    solver = "spectral" if len(fit.prompts.weights) > 1 else None
    weights = zip(settings.prompts, fit.prompts.weights.tolist(), strict=False)
    count = choices.cluster_count
    return {
        "source_kind": source.kind,
        "model": {
            "name": encoder and encoder.name,
            "fingerprint": encoder and encoder.fingerprint,
            "embedded": encoder is not None and encoder.name == "mini",
            "reason": source.model and source.model.reason,
        },
        "looks": [],
        "nouns": {
            "candidates": len(source.vocabulary.words) if source.vocabulary else 0,
            "words": choices.words,
        },
        "used": {
            "n_clusters": choices.n_clusters,
            "model": encoder and encoder.name,
            "tau": how.tau if choices.words else None,
            "semantic_weight": how.weight if choices.words else 0.0,
            "n_neighbors": choices.n_neighbors,
            "solver": solver,
            "noun_filter": chosen_filter(settings) if choices.words else None,
            "compare": settings.comparison,
        },
        "n_copies": fit.n_copies,
        "n_isolated": fit.n_isolated,
        "prompts": [{"template": t, "weight": w} for t, w in weights] if choices.words else [],
        "objective": fit.prompts.objective.tolist(),
        "weight_steps": fit.prompts.steps.tolist(),
        "eigenvalues": fit.spectrum.tolist(),
        "tau": how.tau if choices.words else None,
        "noun_trust": choices.trust,
        "solver": solver,
        "n_neighbors": choices.n_neighbors,
        "membership_temperature": finished.temperature,
        "cluster_count": count and asdict(count),
        "machine": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
    }
