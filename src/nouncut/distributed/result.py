"""From labels to a finished clustering: embedding, nodes that were not cut, sizes, memberships."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import spaced_rows, unit_rows
from nouncut.distributed.cells import Coupling, kernel_of
from nouncut.distributed.fit import PartitionedFit
from nouncut.distributed.halo import sum_files
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.method.graphs import choose_neighbors
from nouncut.method.kernel import shifted_features
from nouncut.method.labels import cluster_sums, nearest_center
from nouncut.method.membership import membership_temperature
from nouncut.method.search import query_neighbors
from nouncut.method.stability import SAMPLE_SIZE, label_stability

# Images that determine the temperature of the memberships.
_JUDGED = 5000
# Nodes that were not cut are placed this many at a time.
_PLACED_AT_ONCE = 20_000
_TINY_DEGREE = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Finished:
    """What describes all clusters; labels and rows of the embedding are in files.

    ``final/PARTITION.npy`` has the labels of nodes, ``axes/PARTITION.npy`` their rotated
    eigenvectors.
    """

    centers: NDArray[np.float64]  # (n_clusters, n_clusters)
    sizes: NDArray[np.int64]  # Images of every cluster, copies included.
    temperature: float
    n_placing: int  # Neighbours that place a new image.


def finish_labels(fit: PartitionedFit, coupling: Coupling) -> Finished:
    """Place the nodes that were not cut, number clusters by size, and choose a temperature."""
    engine, n_clusters = fit.graph.engine, fit.options.n_clusters
    n_parts, labelling = fit.graph.n_partitions, fit.labelling
    engine.storage.write("labels-rotation.npy", labelling.rotation)
    plain = {"vectors": fit.vectors, "folder": labelling.folder, "cut": labelling.cut}
    plain |= {"n_clusters": n_clusters}
    found = engine.run_each("embedding", n_parts, embed_part, plain)
    _fill_clusters(fit, np.sum([one["sizes"] for one in found], axis=0))
    sums = sum_files(engine.storage, "sums/{p:05d}.npy", n_parts)
    suits = max(2, choose_neighbors(fit.layout.n_nodes, n_clusters) // 2)
    n_placing = min(fit.options.n_neighbors, suits)
    if fit.n_excluded:
        _place_excluded(fit, coupling, n_placing, unit_rows(sums))
    found = engine.run_each("sizes", n_parts, count_part, {"n_clusters": n_clusters})
    sizes = np.sum([one["sizes"] for one in found], axis=0)
    first = np.min([one["first"] for one in found], axis=0)
    order = np.lexsort((first, -sizes))
    centers, sizes = unit_rows(sums)[order], sizes[order]
    rank = np.argsort(order).tolist()
    engine.run_each("final", n_parts, renumber_part, {"rank": rank})
    temperature = engine.once("temperature", lambda: _judge(fit, coupling, centers))
    return Finished(centers, sizes, temperature["temperature"], n_placing)


def embed_part(
    storage: Storage,
    partition: int,
    vectors: dict[str, Any],
    folder: str,
    cut: int,
    n_clusters: int,
) -> Result:
    """Write rotated eigenvectors and labels, and the sums of the directions of clusters."""
    rotation = storage.read("labels-rotation.npy")
    rows = storage.read(f"{vectors['folder']}/{partition:05d}.npy")[:, vectors["columns"]]
    axes = np.asarray(rows @ rotation.astype(rows.dtype))
    is_cut = storage.read(f"is_cut/{partition:05d}.npy")
    axes[~is_cut] = 0
    labels = np.array(storage.read(f"{folder}/{partition:05d}.npy")[:, cut])
    labels[~is_cut] = -1
    storage.write(f"axes/{partition:05d}.npy", axes)
    storage.write(f"placed/{partition:05d}.npy", labels)
    _write_sums(storage, partition, axes, labels, n_clusters)
    return {"sizes": np.bincount(labels[is_cut], minlength=n_clusters).tolist()}


def _write_sums(
    storage: Storage, partition: int, axes: NDArray[Any], labels: NDArray[Any], n_clusters: int
) -> None:
    is_cut = labels >= 0
    sums = cluster_sums(unit_rows(axes[is_cut]), labels[is_cut], n_clusters)
    storage.write(f"sums/{partition:05d}.npy", sums)


def _fill_clusters(fit: PartitionedFit, sizes: NDArray[np.intp]) -> None:
    """Give empty clusters the nodes that fit their own clusters worst."""
    engine, n_parts, starts = fit.graph.engine, fit.graph.n_partitions, fit.graph.starts
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return
    sums = sum_files(engine.storage, "sums/{p:05d}.npy", n_parts)
    engine.storage.write("sums/centers.npy", unit_rows(sums))
    # Some of the worst may be the only ones of their clusters.
    n_listed = len(empty) + len(sizes)
    engine.run_each("worst", n_parts, list_worst, {"n_listed": n_listed, "starts": starts})
    worst = np.concatenate([engine.storage.read(f"worst/{p:05d}.npy") for p in range(n_parts)])
    moves: list[list[int]] = []
    for _, node, label in worst[np.argsort(worst[:, 0], kind="stable")]:
        if len(moves) < len(empty) and sizes[int(label)] > 1:
            sizes[int(label)] -= 1
            moves.append([int(node), int(empty[len(moves)])])
    plain = {"moves": moves, "starts": starts, "n_clusters": len(sizes)}
    engine.run_each("filled", n_parts, move_nodes, plain)


def list_worst(storage: Storage, partition: int, n_listed: int, starts: list[int]) -> Result:
    """Write the nodes that fit their clusters worst: (fit, node, label)."""
    labels = storage.read(f"placed/{partition:05d}.npy")
    axes, centers = storage.read(f"axes/{partition:05d}.npy"), storage.read("sums/centers.npy")
    fits = np.einsum("ij,ij->i", unit_rows(axes), centers[labels])
    order = np.argsort(np.where(labels >= 0, fits, np.inf), kind="stable")[:n_listed]
    order = order[labels[order] >= 0]
    listed = np.stack([fits[order], order + starts[partition], labels[order]], axis=1)
    storage.write(f"worst/{partition:05d}.npy", listed)
    return {}


def move_nodes(
    storage: Storage, partition: int, moves: list[list[int]], starts: list[int], n_clusters: int
) -> Result:
    """Move nodes to other clusters."""
    labels = np.array(storage.read(f"placed/{partition:05d}.npy"))
    for node, label in moves:
        if starts[partition] <= node < starts[partition + 1]:
            labels[node - starts[partition]] = label
    storage.write(f"placed/{partition:05d}.npy", labels)
    axes = storage.read(f"axes/{partition:05d}.npy")
    _write_sums(storage, partition, axes, labels, n_clusters)
    return {}


def count_part(storage: Storage, partition: int, n_clusters: int) -> Result:
    """Return the number of images of every cluster, and the first of them."""
    labels = storage.read(f"placed/{partition:05d}.npy")
    rows = storage.read(f"nodes/{partition:05d}/rows.npy")
    weights = storage.read(f"nodes/{partition:05d}/weights.npy")
    sizes = np.bincount(labels, weights, n_clusters).astype(np.int64)
    first = np.full(n_clusters, np.iinfo(np.int64).max)
    np.minimum.at(first, labels, rows)
    return {"sizes": sizes.tolist(), "first": first.tolist()}


def renumber_part(storage: Storage, partition: int, rank: list[int]) -> Result:
    """Write labels in the order of the clusters' sizes."""
    labels = storage.read(f"placed/{partition:05d}.npy")
    storage.write(f"final/{partition:05d}.npy", np.asarray(rank, np.int32)[labels])
    return {}


def _judge(fit: PartitionedFit, coupling: Coupling, centers: NDArray[np.float64]) -> Result:
    """Choose the temperature of the memberships on some nodes."""
    engine, n_nodes = fit.graph.engine, fit.layout.n_nodes
    plain = {"n_nodes": n_nodes, "has_semantic": coupling.differs}
    tasks = [
        Task(f"{p:05d}", judge_part, {"partition": p, "start": start} | plain)
        for p, start in enumerate(fit.graph.starts[:-1])
    ]
    engine.run("judged", tasks)
    parts = [
        engine.storage.read_several(f"judged/{p:05d}.npz") for p in range(fit.graph.n_partitions)
    ]
    sample = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    semantic = sample.get("semantic")
    kernel = kernel_of(engine.storage, coupling, sample["features"], semantic)
    rng = np.random.RandomState(fit.options.seed)
    stability = label_stability(kernel, sample["labels"].astype(np.intp), rng)
    return {"temperature": membership_temperature(sample["embedding"], centers, stability)}


def judge_part(
    storage: Storage, partition: int, start: int, n_nodes: int, has_semantic: bool
) -> Result:
    """Write what is known about evenly spaced nodes."""
    final = storage.read(f"final/{partition:05d}.npy")

    stop = start + len(final)
    few, many = (spaced_rows(n_nodes, size, start, stop) for size in (SAMPLE_SIZE, _JUDGED))
    names = ["features", *(["semantic"] if has_semantic else [])]
    arrays = {name: storage.read(f"nodes/{partition:05d}/{name}.npy")[few] for name in names}
    axes = storage.read(f"axes/{partition:05d}.npy")[many]
    arrays |= {"labels": final[few], "embedding": unit_rows(axes)}
    storage.write_several(f"judged/{partition:05d}.npz", **arrays)
    return {}


def _place_excluded(
    fit: PartitionedFit, coupling: Coupling, n_placing: int, centers: NDArray[np.float64]
) -> None:
    """Place nodes that were not cut by their nearest nodes, as new images are placed."""
    engine, n_parts = fit.graph.engine, fit.graph.n_partitions
    plain = {"starts": fit.graph.starts, "coupling": coupling._asdict()}
    engine.run_each("excluded", n_parts, list_excluded, plain)
    nodes = np.concatenate([engine.storage.read(f"excluded/{p:05d}.npy") for p in range(n_parts)])
    engine.storage.write("excluded/nodes.npy", nodes)
    engine.storage.write("excluded/centers.npy", centers)
    for number, first in enumerate(range(0, len(nodes), _PLACED_AT_ONCE)):
        batch = {"batch": number, "first": first, "n_parts": n_parts, "q": n_placing}
        for shifted in (False, True):
            name = f"place-{number}-{'looks' if shifted else 'kernel'}"
            own = plain | batch | {"shifted": shifted}
            engine.run_each(name, n_parts, query_part, own)
            engine.once(f"{name}-merged", partial(_merge_queries, engine, batch, shifted))
            own |= {"weights": fit.prompts.weights.tolist()}
            engine.run_each(f"{name}-sums", n_parts, sum_directions, own)
        _place_batch(engine, n_parts, batch)
    engine.run_each("placed", n_parts, adopt_placed, {"starts": fit.graph.starts})


def list_excluded(
    storage: Storage, partition: int, starts: list[int], coupling: dict[str, Any]
) -> Result:
    """Write which nodes of a partition were not cut, with their features."""
    alone = np.flatnonzero(~storage.read(f"is_cut/{partition:05d}.npy"))
    storage.write(f"excluded/{partition:05d}.npy", alone + starts[partition])
    names = ["features", *(["semantic"] if Coupling(**coupling).differs else [])]
    arrays = {name: storage.read(f"nodes/{partition:05d}/{name}.npy")[alone] for name in names}
    storage.write_several(f"excluded/{partition:05d}.npz", **arrays)
    return {}


def _read_batch(storage: Storage, n_parts: int, first: int, name: str) -> NDArray[Any]:
    parts = [storage.read_several(f"excluded/{p:05d}.npz")[name] for p in range(n_parts)]
    return np.concatenate(parts)[first : first + _PLACED_AT_ONCE]


def query_part(
    storage: Storage,
    partition: int,
    starts: list[int],
    coupling: dict[str, Any],
    batch: int,
    first: int,
    n_parts: int,
    q: int,
    shifted: bool,
) -> Result:
    """Find the nearest cut nodes of a partition for nodes that were not cut."""
    how = Coupling(**coupling)
    is_cut = np.flatnonzero(storage.read(f"is_cut/{partition:05d}.npy"))
    names = ["features", *(["semantic"] if how.differs else [])]
    queries = [_read_batch(storage, n_parts, first, name) for name in names]
    known = [storage.read(f"nodes/{partition:05d}/{name}.npy")[is_cut] for name in names]
    if shifted:
        queries[0], known_looks = shifted_features(queries[0]), shifted_features(known[0])
        known[0] = known_looks
    kernel = kernel_of(storage, how, known[0], known[1] if how.differs else None)
    if how.has_nouns and not how.differs:
        # Shifted features compare looks only; nouns keep the original ones.
        rows = storage.read(f"nodes/{partition:05d}/features.npy")[is_cut]
        kernel = kernel._replace(semantic=rows)
    semantic = queries[-1] if how.differs else _read_batch(storage, n_parts, first, "features")
    found = query_neighbors(kernel, min(q, len(is_cut)), queries[0], semantic)
    nodes = [
        np.where(near.indices >= 0, is_cut[near.indices] + starts[partition], -1) for near in found
    ]
    place = f"excluded/query-{batch}-{int(shifted)}-{partition:05d}.npz"
    values = np.stack([near.values for near in found])
    storage.write_several(place, nodes=np.stack(nodes), values=values)
    return {}


def _merge_queries(engine: Engine, batch: dict[str, Any], shifted: bool) -> Result:
    """Keep the nearest nodes of all partitions."""
    storage, name = engine.storage, f"excluded/query-{batch['batch']}-{int(shifted)}"
    parts = [storage.read_several(f"{name}-{p:05d}.npz") for p in range(batch["n_parts"])]
    nodes, values = (
        np.concatenate([part[key] for part in parts], axis=2) for key in ("nodes", "values")
    )
    order = np.argsort(-values, axis=2, kind="stable")[:, :, : batch["q"]]
    storage.write_several(
        f"{name}.npz",
        nodes=np.take_along_axis(nodes, order, axis=2),
        values=np.take_along_axis(values, order, axis=2),
    )
    return {}


def sum_directions(
    storage: Storage,
    partition: int,
    starts: list[int],
    coupling: dict[str, Any],
    batch: int,
    first: int,
    n_parts: int,
    q: int,
    shifted: bool,
    weights: list[float],
) -> Result:
    """Sum the eigenvectors of the nearest nodes in this partition, weighted by edges to them."""
    name = f"excluded/query-{batch}-{int(shifted)}"
    found = storage.read_several(f"{name}.npz")
    start, stop = starts[partition], starts[partition + 1]
    axes = storage.read(f"axes/{partition:05d}.npy")
    degrees = storage.read(f"degrees/{partition:05d}.npy")
    mean = storage.read(f"average/degrees/{partition:05d}.npy")[:, 0]
    total = np.zeros((found["nodes"].shape[1], axes.shape[1]))
    for prompt, (nodes, values) in enumerate(zip(found["nodes"], found["values"], strict=True)):
        own = 1 / np.sqrt(np.maximum(values.sum(axis=1), _TINY_DEGREE))
        rows, places = np.nonzero((nodes >= start) & (nodes < stop))
        at = nodes[rows, places] - start
        scale = np.maximum(degrees[at, prompt] * mean[at], _TINY_DEGREE)
        edges = weights[prompt] * own[rows] * values[rows, places] / np.sqrt(scale)
        np.add.at(total, rows, edges[:, None] * axes[at])
    storage.write(f"{name}-sum-{partition:05d}.npy", total)
    return {}


def _place_batch(engine: Engine, n_parts: int, batch: dict[str, Any]) -> None:
    """Write directions and labels of a batch; looks alone decide where the kernel finds nothing."""
    storage, number = engine.storage, batch["batch"]
    by_kernel, by_looks = (
        sum_files(storage, f"excluded/query-{number}-{shifted}-sum-{{p:05d}}.npy", n_parts)
        for shifted in (0, 1)
    )
    is_known = np.any(by_kernel != 0, axis=1, keepdims=True)
    placed = unit_rows(np.where(is_known, by_kernel, by_looks))
    labels = nearest_center(placed, storage.read("excluded/centers.npy"))
    first = batch["first"]
    nodes = storage.read("excluded/nodes.npy", first, first + len(labels))
    storage.write_several(f"excluded/placed-{number}.npz", nodes=nodes, axes=placed, labels=labels)


def adopt_placed(storage: Storage, partition: int, starts: list[int]) -> Result:
    """Write the directions and labels of placed nodes beside those of the others."""
    axes = np.array(storage.read(f"axes/{partition:05d}.npy"))
    labels = np.array(storage.read(f"placed/{partition:05d}.npy"))
    n_batches = -(-len(storage.read("excluded/nodes.npy")) // _PLACED_AT_ONCE)
    for number in range(n_batches):
        found = storage.read_several(f"excluded/placed-{number}.npz")
        own = (found["nodes"] >= starts[partition]) & (found["nodes"] < starts[partition + 1])
        at = found["nodes"][own] - starts[partition]
        axes[at], labels[at] = found["axes"][own], found["labels"][own]
    storage.write(f"axes/{partition:05d}.npy", axes)
    storage.write(f"placed/{partition:05d}.npy", labels)
    return {}
