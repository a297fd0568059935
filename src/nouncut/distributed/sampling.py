"""The sample of a large run: some images with features, graph, map and what places new images.

Workers pick the rows of the sample from their shards and partitions; the client never reads more.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.compute.rows import Projection, unit_rows
from nouncut.compute.threads import count_threads
from nouncut.distributed.cells import Coupling, ShardRows
from nouncut.distributed.choices import Choices
from nouncut.distributed.contents import Source, draw_map
from nouncut.distributed.fit import PartitionedFit
from nouncut.distributed.placing import Placing, place_rows
from nouncut.distributed.result import Finished
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.familiarity import least_familiarity
from nouncut.method.graphs import choose_neighbors, mean_graph, normalize_graph, symmetric_graphs
from nouncut.method.kernel import Kernel
from nouncut.method.placement import Placement
from nouncut.method.search import search_neighbors
from nouncut.runs.collection import Collection, familiar_rows
from nouncut.runs.contents import run_arrays
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.sample import ROWS
from nouncut.runs.tables import CLUSTERS_SCHEMA
from nouncut.runs.writer import RunContents

# Evenly spaced images, and as many more in equal shares of all clusters: a report of 40,000 images
# opens at once, and their neighbours are found in a minute.
SAMPLED = 20_000
# Bytes of the unit rows of all images that a run keeps, so that all can be searched: a search
# reads each of them once. Larger runs search their sample.
MOST_SEARCHED = 20e9
# Cosines of unit rows in half precision are right to three digits.
_KEPT = np.dtype(np.float16)
_ROWS, _NODES = "kept/rows.npy", "kept/nodes.npy"


class Nodes(NamedTuple):
    """What was cut: images, or micro-clusters of them in the folder `prefix`."""

    fit: PartitionedFit
    finished: Finished
    prefix: str = ""
    starts: tuple[int, ...] = ()  # The first micro-cluster of every shard.
    placing: Placing | None = None


def choose_sample(
    n_images: int, named: NDArray[Any], shown: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """Return the rows of the sample: evenly spaced ones, some of every cluster, and those shown.

    `named` has evenly spaced images of every cluster: (cluster, row).
    """
    even = np.linspace(0, n_images - 1, min(n_images, SAMPLED)).astype(np.int64)
    share = max(1, SAMPLED // n_clusters)
    of_each = [even, shown.astype(np.int64)]
    for cluster in range(n_clusters):
        own = np.sort(named[named[:, 0] == cluster, 1]).astype(np.int64)
        at = np.linspace(0, len(own) - 1, min(len(own), share)).astype(np.intp)
        of_each.append(own[at])
    return np.unique(np.concatenate(of_each))


def sample_contents(
    engine: Engine,
    rows: NDArray[np.int64],
    nodes: Nodes,
    choices: Choices,
    source: Source,
    tables: dict[str, list[Path]],
    clusters: pa.Table,
    job: Job,
) -> RunContents:
    """Return the sample as the contents of a run of its own; `tables` are those of all images."""
    engine.storage.write(_ROWS, rows)
    assignments, images = (_take(tables[name], rows) for name in ("assignments", "images"))
    place = images.schema.get_field_index("row")
    images = images.set_column(place, "row", pa.array(np.arange(len(rows)), pa.int32()))
    collection, ids, directions = _collect(engine, rows, nodes, choices, source, images)
    labels = assignments["cluster"].to_numpy().astype(np.intp)
    found = _picked_nodes(nodes.fit.graph.engine, ids, nodes.fit.graph.n_partitions)
    if directions is not None:
        found["axes"] = directions * np.linalg.norm(found["axes"], axis=1, keepdims=True)
    model = _model(engine, found, labels, nodes, choices, collection, job)
    points = draw_map(model, job)
    arrays = run_arrays(collection, model) | {"layout": points, ROWS: rows}
    familiar = least_familiarity(familiar_rows(collection), n_threads=count_threads(job.n_jobs))
    manifest = {"source_kind": collection.source, "least_familiarity": familiar}
    return RunContents(
        manifest, assignments, _own_clusters(clusters, rows, labels), images, arrays=arrays
    )


def _take(files: list[Path], rows: NDArray[np.int64]) -> pa.Table:
    """Return some rows of a table in several files, reading one file at a time."""
    found, start = [], 0
    for file in files:
        n_rows = pq.read_metadata(file).num_rows
        own = rows[(rows >= start) & (rows < start + n_rows)] - start
        if len(own):
            found.append(pq.read_table(file).take(own))
        start += n_rows
    return pa.concat_tables(found).combine_chunks()


def _own_clusters(
    clusters: pa.Table, rows: NDArray[np.int64], labels: NDArray[np.intp]
) -> pa.Table:
    """Return the table of clusters with sizes and rows of the sample."""
    sizes = np.bincount(labels, minlength=len(clusters))
    own = [
        row
        | {name: np.searchsorted(rows, row[name]).tolist() for name in ("exemplars", "borderline")}
        | {"size": int(sizes[row["cluster"]])}
        for row in clusters.to_pylist()
    ]
    return pa.Table.from_pylist(own, schema=CLUSTERS_SCHEMA)


def _collect(
    engine: Engine,
    rows: NDArray[np.int64],
    nodes: Nodes,
    choices: Choices,
    source: Source,
    images: pa.Table,
) -> tuple[Collection, NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the images of the sample with their features, and the nodes that they were cut as.

    Also returns the directions of images that were placed.
    """
    how, storage = Coupling(**choices.coupling), engine.storage
    ends = [*source.shards.starts, source.shards.n_images]
    placing = nodes.placing._asdict() if nodes.placing else None
    plain = {"coupling": how._asdict(), "prefix": nodes.prefix, "placing": placing}
    tasks = [
        Task(f"{shard:05d}", pick_features, {"shard": shard, "start": a, "stop": b} | plain)
        for shard, (a, b) in enumerate(pairwise(ends))
        if np.any((rows >= a) & (rows < b))
    ]
    engine.run("kept-features", tasks, "collecting results")
    parts = [storage.read_several(f"kept/features-{task.key}.npz") for task in tasks]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    ids = rows
    if nodes.prefix:
        starts = np.array(nodes.starts)[np.searchsorted(ends, rows, side="right") - 1]
        ids = starts + found["micro"]
    view = Projection(**storage.read_several("choices/view.npz")) if how.has_view else None
    hashes = None if images["hash"].null_count else tuple(images["hash"].to_pylist())
    collection = Collection(
        "images" if source.kind == "images" else "features",
        ImageSet(tuple(images["path"].to_pylist()), hashes, ()),
        found["features"],
        found["semantic"] if source.model is not None else None,
        () if how.by_words else (view,),
        found.get("lengths"),
        view if how.by_words else None,
        source.model,
    )
    return collection, ids, found.get("directions")


def pick_features(
    storage: Storage,
    shard: int,
    start: int,
    stop: int,
    coupling: dict[str, Any],
    prefix: str,
    placing: dict[str, Any] | None,
) -> Result:
    """Write the features of a shard's images that are in the sample."""
    own = _own_rows(storage, start, stop) - start
    how = Coupling(**coupling)
    rows = ShardRows.read(storage, shard, how, own)
    arrays: dict[str, NDArray[Any]] = {
        "features": rows.features,
        "semantic": np.asarray(rows.meaning, np.float32),
    }
    if how.has_view and not how.by_words:
        view = Projection(**storage.read_several("choices/view.npz"))
        arrays["lengths"] = np.asarray(view.lengths(rows.raw), np.float32)
    if placing:
        arrays["micro"] = storage.read(f"{prefix}micro/{shard:05d}.npy")[own].astype(np.int64)
        placed = place_rows(storage, Placing(**placing), shard, own)
        arrays["directions"] = np.concatenate(list(placed))
    storage.write_several(f"kept/features-{shard:05d}.npz", **arrays)
    return {}


def keep_features(engine: Engine, source: Source, choices: Choices) -> list[str]:
    """Write the unit rows of all images for searches; return their names, none if too large."""
    how, storage = Coupling(**choices.coupling), engine.storage
    widths = [storage.read(f"{name}/00000.npy", 0, 1).shape[1] for name in _encoded(how)]
    if sum(widths) * _KEPT.itemsize * source.shards.n_images > MOST_SEARCHED:
        return []
    # Where texts and images share a space, the rows that compare images find texts too.
    names = ["looks", *(["meaning"] if how.has_semantic or how.has_view else [])]
    names = names if source.model is not None else names[:1]
    plain = {"coupling": how._asdict(), "names": names}
    tasks = [
        Task(f"{shard:05d}", keep_shard, {"shard": shard} | plain)
        for shard in range(len(source.shards.counts))
    ]
    engine.run("kept-rows", tasks, "writing the run")
    return names


def _encoded(how: Coupling) -> list[str]:
    return ["features", *(["semantic"] if how.has_semantic else [])]


def keep_shard(storage: Storage, shard: int, coupling: dict[str, Any], names: list[str]) -> Result:
    """Write the unit rows of a shard's images in half precision."""
    how = Coupling(**coupling)
    raw, meaning, features = ShardRows.read(storage, shard, how)
    if how.has_view and not how.by_words:
        view = Projection(**storage.read_several("choices/view.npz"))
        features = view.cosine_rows(features, view.lengths(raw))
    for name, rows in (("looks", features), ("meaning", np.asarray(meaning, np.float32))):
        if name in names:
            storage.write(f"tables/{name}-{shard:05d}.npy", unit_rows(rows).astype(_KEPT))
    return {}


def _own_rows(storage: Storage, start: int, stop: int) -> NDArray[np.int64]:
    rows = np.asarray(storage.read(_ROWS))
    return rows[(rows >= start) & (rows < stop)]


def _model(
    engine: Engine,
    found: dict[str, NDArray[Any]],
    labels: NDArray[np.intp],
    nodes: Nodes,
    choices: Choices,
    collection: Collection,
    job: Job,
) -> NTKSpectralClustering:
    """Return an estimator of the sample: its own graph, and eigenvectors of the graph of all.

    `found` has what was computed for the nodes of the sample.
    """
    fit, finished = nodes.fit, nodes.finished
    kernel = _kernel(engine.storage, choices, collection)
    graph = _sample_graph(kernel, fit.prompts.weights, len(finished.centers), job)
    is_cut = np.flatnonzero(found["is_cut"])
    model = NTKSpectralClustering(len(finished.centers), random_state=fit.options.seed)
    model.labels_, model.graph_, model.cluster_centers_ = labels, graph, finished.centers
    model.n_clusters_, model.embedding_ = len(finished.centers), unit_rows(found["axes"])
    model.membership_temperature_ = finished.temperature
    # Fewer images are near a new one than among all images.
    suits = max(2, choose_neighbors(len(is_cut), len(finished.centers)) // 2)
    model._placement = Placement(
        is_cut,
        kernel.take(is_cut),
        min(finished.n_placing, suits),
        False,
        found["degrees"][is_cut].T.astype(np.float64),
        fit.prompts.weights,
        found["mean"][is_cut].astype(np.float64),
        found["axes"][is_cut],
    )
    return model


def _kernel(storage: Storage, choices: Choices, collection: Collection) -> Kernel:
    how, features = Coupling(**choices.coupling), unit_rows(collection.visual)
    if not how.has_nouns:
        return Kernel(features, features)
    semantic = features if collection.semantic is None else unit_rows(collection.semantic)
    prompts = list(storage.read("choices/nouns.npy"))
    return Kernel(features, semantic, prompts, how.tau, how.weight)


def _sample_graph(kernel: Kernel, weights: NDArray[Any], n_clusters: int, job: Job) -> Any:
    """Return the graph of the sample alone, with the weights that prompts have in that of all."""
    n_images = len(kernel.features)
    q = min(choose_neighbors(n_images, n_clusters), n_images - 1)
    found = search_neighbors(kernel, q, n_threads=count_threads(job.n_jobs))
    graphs = [normalize_graph(graph)[0] for graph in symmetric_graphs(found.neighbors, q, "union")]
    even = np.full(len(graphs), 1 / len(graphs))
    mean = mean_graph(graphs, weights if len(weights) == len(graphs) else even)
    return normalize_graph(mean)[0]


def _picked_nodes(
    engine: Engine, ids: NDArray[np.int64], n_partitions: int
) -> dict[str, NDArray[Any]]:
    """Return what was computed for nodes, one row for each of `ids`."""
    engine.storage.write(_NODES, np.unique(ids))
    engine.run_each("kept-nodes", n_partitions, pick_nodes, {})
    parts = [engine.storage.read_several(f"kept/nodes-{p:05d}.npz") for p in range(n_partitions)]
    every = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(every["ids"])
    at = order[np.searchsorted(every["ids"][order], ids)]
    return {name: array[at] for name, array in every.items()}


def pick_nodes(storage: Storage, partition: int) -> Result:
    """Write what was computed for the nodes of a partition that are in the sample."""
    wanted = storage.read(_NODES)
    rows, copies = (
        np.asarray(storage.read(f"nodes/{partition:05d}/{name}.npy")) for name in ("rows", "copies")
    )
    ids = np.concatenate([rows, copies[:, 0]])
    node = np.concatenate([np.arange(len(rows)), copies[:, 1]])
    is_original = np.arange(len(ids)) < len(rows)
    own = np.flatnonzero(np.isin(ids, wanted))
    at = node[own]
    storage.write_several(
        f"kept/nodes-{partition:05d}.npz",
        ids=ids[own],
        # One of several equal images stands for all of them.
        is_cut=np.asarray(storage.read(f"is_cut/{partition:05d}.npy"))[at] & is_original[own],
        axes=np.asarray(storage.read(f"axes/{partition:05d}.npy"))[at],
        degrees=np.asarray(storage.read(f"degrees/{partition:05d}.npy"))[at],
        mean=np.asarray(storage.read(f"average/degrees/{partition:05d}.npy"))[at, 0],
    )
    return {}
