"""The tables of a run with too many images for one machine's memory, in parts.

Every partition reduces what it knows to a few numbers per cluster; one task per shard writes its
part of the tables. Only a sample has all arrays (`nouncut.distributed.sampling`).
"""

from __future__ import annotations

import io
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.distributed.cells import Coupling
from nouncut.distributed.choices import Choices
from nouncut.distributed.coarsen import COARSE
from nouncut.distributed.contents import Source, read_model_rows
from nouncut.distributed.fit import PartitionedFit, Shards
from nouncut.distributed.halo import read_rows, sum_files
from nouncut.distributed.result import Finished
from nouncut.distributed.sampling import Nodes, choose_sample, keep_features, sample_contents
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.distributed.union import around
from nouncut.method.hierarchy import join_linked_clusters, nested_levels
from nouncut.method.membership import Membership, cluster_membership, outlier_level
from nouncut.runs.collection import Collection
from nouncut.runs.contents import membership_columns
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

# Up to this number of images, a run has whole tables and all arrays.
LARGEST_WHOLE = 500_000
# What is known about one image.
MEMBER = np.dtype(
    [
        ("row", "<i8"),
        ("label", "<i4"),
        ("second", "<i4"),
        ("confidence", "<f4"),
        ("second_confidence", "<f4"),
        ("fit", "<f4"),
        ("is_single", "?"),
    ]
)
# Fits that tell outliers, from every partition.
_FITS = 10_000
# Outliers of every shard that are in the sample.
_OUTLIERS = 20


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

    With micro-clusters, the fit is theirs, and images are what their micro-clusters are.
    """
    engine, n_clusters = fit.graph.engine, len(finished.centers)
    storage, n_parts = engine.storage, fit.graph.n_partitions
    nodes = micro.shards if micro else source.shards
    storage.write("members/centers.npy", finished.centers)
    plain = {
        "n_clusters": n_clusters,
        "temperature": finished.temperature,
        "shards": [*nodes.starts, nodes.n_images],
        "folder": fit.graph.folder,
        "coupling": (micro.coupling if micro else Coupling(**choices.coupling))._asdict(),
    }
    found = engine.run_each("members", n_parts, describe_part, plain, "collecting results")
    parts = [storage.read_several(f"members/{p:05d}.npz") for p in range(n_parts)]
    whole = micro.engine if micro else engine
    if micro:
        parts = [_with_images(whole.storage, source.shards, micro.shards, part) for part in parts]
    names = _name(whole.storage, parts, n_clusters, choices, source, job)
    level = outlier_level(np.concatenate([part["fits"] for part in parts]))
    tables = _write_tables(whole, source.shards, found, names, level, f"{COARSE}/" if micro else "")
    kept = keep_features(whole, source, choices)
    files = _download(whole.storage, source.shards, scratch, kept)
    edges = sum_files(storage, "members/edges-{p:05d}.npy", n_parts)
    sums = np.sum([part["sums"] for part in parts], axis=0)
    levels = nested_levels(
        join_linked_clusters(edges, sums if source.model else None), job.settings.levels
    )
    manifest = _manifest(fit, finished, choices, source, job) | {
        "n_outliers": sum(one["n_outliers"] for one in tables),
        "tree": {"sizes": finished.sizes.tolist(), "levels": [one.tolist() for one in levels]},
    }
    cut = Nodes(fit, finished)
    if micro:
        manifest["micro_clusters"] = {"number": nodes.n_images, "mean_cosine": micro.cosine}
        manifest["n_copies"] = 0
        cut = Nodes(fit, finished, f"{COARSE}/", tuple(nodes.starts))
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


def _sampled_rows(
    source: Source, clusters: pa.Table, parts: list[dict[str, Any]], tables: list[Result]
) -> NDArray[np.int64]:
    """Choose the images that have arrays; those that the report shows are among them."""
    named = np.concatenate([part["named"] for part in parts])
    shown = [rows for name in ("exemplars", "borderline") for rows in clusters[name].to_pylist()]
    shown += [one["outliers"] for one in tables]
    rows = np.array([row for some in shown for row in some], np.int64)
    return choose_sample(source.shards.n_images, named, rows, len(clusters))


@dataclass(frozen=True)
class MicroClusters:
    """Micro-clusters that were cut instead of images; `engine` is that of the images."""

    engine: Engine
    shards: Shards
    coupling: Coupling
    cosine: float  # The mean cosine between images and the centres of their micro-clusters.


def _with_images(
    storage: Storage, shards: Shards, micro: Shards, part: dict[str, Any]
) -> dict[str, Any]:
    """Replace micro-clusters by their most typical images."""
    changed = dict(part)
    for name in ("typical", "borderline", "named"):
        table = part[name].copy()
        ids = table[:, 1].astype(np.int64)
        owners = np.searchsorted(micro.starts, ids, side="right") - 1
        for shard in np.unique(owners):
            own = owners == shard
            typical = storage.read(f"{COARSE}/typical/{shard:05d}.npy")
            table[own, 1] = shards.starts[shard] + typical[ids[own] - micro.starts[shard]]
        changed[name] = table
    return changed


def describe_part(
    storage: Storage,
    partition: int,
    n_clusters: int,
    temperature: float,
    shards: list[int],
    folder: str,
    coupling: dict[str, Any],
) -> Result:
    """Write the memberships of a partition's images, and what its clusters consist of."""
    own = storage.read(f"final/{partition:05d}.npy")
    labels, graph = around(storage, partition, "final", own), read_rows(storage, folder, partition)
    ties = graph @ label_matrix(labels, n_clusters)
    axes = unit_rows(storage.read(f"axes/{partition:05d}.npy"))
    centers = storage.read("members/centers.npy")
    membership = cluster_membership(axes, centers, labels=own, temperature=temperature)
    rows, copies = (
        storage.read(f"nodes/{partition:05d}/{name}.npy") for name in ("rows", "copies")
    )
    members = _members(membership, ties.max(axis=1).toarray().ravel(), rows, copies)
    storage.write(f"members/{partition:05d}.npy", members)
    storage.write(
        f"members/edges-{partition:05d}.npy", (label_matrix(own, n_clusters).T @ ties).toarray()
    )
    within = np.asarray(ties[np.arange(len(own)), own]).ravel()
    margins = membership.confidence - membership.second_confidence
    torn = membership.confidence < 2 * membership.second_confidence
    name = "semantic" if Coupling(**coupling).differs else "features"
    meaning = storage.read(f"nodes/{partition:05d}/{name}.npy")
    fits = members["fit"][members["is_single"]]
    storage.write_several(
        f"members/{partition:05d}.npz",
        typical=_first_rows(-within, own, rows, n_clusters),
        borderline=_first_rows(margins[torn], own[torn], rows[torn], n_clusters),
        named=_spaced_rows(own, rows),
        sums=label_matrix(own, n_clusters).T @ np.asarray(meaning, np.float64),
        fits=fits[:: -(-len(fits) // _FITS) or 1],
    )
    return {"offsets": np.searchsorted(members["row"], shards).tolist()}


def _members(
    found: Membership, fit: NDArray[Any], rows: NDArray[np.int64], copies: NDArray[np.int64]
) -> NDArray[Any]:
    """Return what is known about images, copies included, in their own order."""
    node = np.concatenate([np.arange(len(rows)), copies[:, 1]])
    members = np.empty(len(node), MEMBER)
    members["row"] = np.concatenate([rows, copies[:, 0]])
    n_copies = np.bincount(copies[:, 1], minlength=len(rows))
    members["is_single"], members["fit"] = n_copies[node] == 0, fit[node]
    for name in ("label", "second", "confidence", "second_confidence"):
        members[name] = getattr(found, name)[node]
    return members[np.argsort(members["row"], kind="stable")]


def _first_rows(
    scores: NDArray[Any], labels: NDArray[Any], rows: NDArray[np.int64], n_clusters: int
) -> NDArray[Any]:
    """Return the images with the lowest scores of every cluster: (cluster, image, score)."""
    order = np.lexsort((rows, scores, labels))
    first = np.searchsorted(labels[order], np.arange(n_clusters))
    rank = np.arange(len(order)) - first[labels[order]]
    kept = order[rank < N_EXEMPLARS]
    return np.stack([labels[kept], rows[kept], scores[kept]], axis=1).astype(np.float64)


def _spaced_rows(labels: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return evenly spaced images of every cluster, enough to name it: (cluster, image)."""
    kept = []
    for cluster in np.unique(labels):
        own = np.sort(rows[labels == cluster])
        at = np.unique(np.linspace(0, len(own) - 1, min(len(own), IMAGES_PER_CLUSTER)).astype(int))
        kept.append(np.stack([np.full(len(at), cluster), own[at]], axis=1))
    return np.concatenate([np.empty((0, 2), np.int64), *kept])


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
    every = np.concatenate([part["named"] for part in parts])
    every = every[np.lexsort((every[:, 1], every[:, 0]))]
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
            },
        )
        for shard, start in enumerate(shards.starts)
    ]
    return engine.run("tables", tasks, "writing the run")


def write_part(
    storage: Storage,
    shard: int,
    start: int,
    offsets: list[list[int]],
    level: float,
    prefix: str,
) -> Result:
    """Write the tables of one shard's images."""
    parts = [
        storage.read(f"{prefix}members/{partition:05d}.npy", *ends)
        for partition, ends in enumerate(offsets)
        if ends[1] > ends[0]
    ]
    members = np.concatenate([np.empty(0, MEMBER), *parts])
    members = members[np.argsort(members["row"], kind="stable")]
    if prefix:
        members = members[storage.read(f"{prefix}micro/{shard:05d}.npy")]
    images = pq.read_table(io.BytesIO(storage.read_bytes(f"images/{shard:05d}.parquet")))
    clustered = images.filter(images["error"].is_null())
    names = np.array(storage.read_json("members/names.json"), dtype=object)
    found = Membership(*(members[name] for name in Membership._fields))
    is_outlier = members["is_single"] & (members["fit"] < level)
    columns = {"path": clustered["path"], "outlier": is_outlier}
    columns |= membership_columns(found._replace(label=found.label.astype(np.intp)), names)
    rows = pa.array(start + np.arange(len(clustered)), pa.int32())
    place = clustered.schema.get_field_index("row")
    for name, table in (
        ("assignments", table_of(columns, ASSIGNMENTS_SCHEMA)),
        ("images", clustered.set_column(place, "row", rows)),
        ("skipped", images.filter(images["error"].is_valid())),
    ):
        buffer = io.BytesIO()
        pq.write_table(table.cast(_schema(name)), buffer, write_page_checksum=True)
        storage.write_bytes(f"tables/{name}-{shard:05d}.parquet", buffer.getbuffer())
    unsure = np.flatnonzero(is_outlier)
    unsure = unsure[np.argsort(members["confidence"][unsure], kind="stable")[:_OUTLIERS]]
    return {"n_outliers": int(is_outlier.sum()), "outliers": (start + unsure).tolist()}


def _schema(name: str) -> pa.Schema:
    return ASSIGNMENTS_SCHEMA if name == "assignments" else IMAGES_SCHEMA


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
