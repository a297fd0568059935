"""Labels from partitioned eigenvectors: rotations from a sample, everything else from sums.

The rules are those of `nouncut.method.merge`: of the plain cut and of the joined pieces of a finer
one, we take the cut that keeps more information, after nodes have moved to their neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix, spaced_rows, unit_rows
from nouncut.distributed.blocks import read_block
from nouncut.distributed.halo import RowGraph, exchange, read_rows, stack_rows, sum_files, take_rows
from nouncut.distributed.stages import Flow, Result, Step, Task
from nouncut.distributed.storage import Storage
from nouncut.method.labels import (
    MANY_ENTRIES,
    SAMPLED_PER_CLUSTER,
    cluster_sums,
    discretizing_rotation,
    nearest_axis,
    pivoted_rotation,
)
from nouncut.method.merge import (
    SETTLING_ROUNDS,
    join_linked,
    kept_information,
    separating_rotation,
    strongest_cluster,
    volume_roots,
)


class Labelling(NamedTuple):
    """Labels in files, and how eigenvectors are rotated into the embedding."""

    folder: str
    cut: int  # Which of the label arrays in the folder.
    rotation: NDArray[np.float64]  # (n_pieces, n_clusters)


def label_nodes(graph: RowGraph, vectors: dict[str, Any], n_clusters: int, seed: int) -> Labelling:
    """Cut a normalised graph into clusters, given its leading eigenvectors."""
    n_pieces = len(vectors["columns"])
    _find_rotations(graph, vectors, n_clusters, seed)
    engine, n_parts = graph.engine, graph.n_partitions
    plain = {"vectors": vectors, "n_clusters": n_clusters}
    engine.run_each("labels-assign", n_parts, assign_part, plain)
    if n_pieces == n_clusters:
        return Labelling("labels-0", 0, np.eye(n_clusters))
    edges, _, volumes = cluster_links(graph, "labels-0", 1, "labels-pieces", n_pieces)
    joined = join_linked(edges).labels(np.arange(n_pieces), n_clusters)
    tied = np.bincount(joined, edges.sum(axis=1), n_clusters).astype(np.float64)
    rounds = _settle(graph, n_clusters, joined, [volumes[:n_clusters], tied])
    kept = [_information(graph, n_clusters, cut, number) for cut, number in enumerate(rounds)]
    best = int(np.argmax(kept))
    folder = f"labels-{rounds[best]}"
    sums = _direction_sums(graph, vectors, folder, best, n_clusters)
    return Labelling(folder, best, separating_rotation(sums))


def _find_rotations(graph: RowGraph, vectors: dict[str, Any], n_clusters: int, seed: int) -> None:
    """Find the rotations of both cuts in a sample of the eigenvectors' rows."""
    engine, n_parts = graph.engine, graph.n_partitions
    found = engine.run_each("labels-lengths", n_parts, sum_lengths, {"vectors": vectors})
    lengths, n_pieces = np.array([one["length"] for one in found]), len(vectors["columns"])
    n_nodes = graph.n_nodes
    # Long rows are sampled for the pivots, evenly spaced ones for the rotation after that.
    n_even = min(n_nodes, max(SAMPLED_PER_CLUSTER * n_pieces, MANY_ENTRIES // n_pieces))
    n_long = 0 if n_even == n_nodes else min(n_nodes, SAMPLED_PER_CLUSTER * n_pieces)
    shares = np.diff(np.round(n_long * np.cumsum([0, *lengths]) / lengths.sum())).astype(int)
    tasks = [
        Task(
            f"{p:05d}",
            sample_vectors,
            {
                "partition": p,
                "vectors": vectors,
                "n_long": int(shares[p]),
                "even": [n_even, graph.n_nodes, graph.starts[p]],
                "seed": seed,
            },
        )
        for p in range(graph.n_partitions)
    ]
    graph.engine.run("labels-sample", tasks)
    plain = {"n_partitions": graph.n_partitions, "n_clusters": n_clusters}
    graph.engine.run("labels-rotations", [Task("0", find_rotations, plain)])


def sum_lengths(storage: Storage, partition: int, vectors: dict[str, Any]) -> Result:
    """Return the sum of the squared lengths of a partition's rows."""
    rows = read_block(storage, partition, {"columns": []}, vectors)
    return {"length": float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))}


def sample_vectors(
    storage: Storage,
    partition: int,
    vectors: dict[str, Any],
    n_long: int,
    even: list[int],
    seed: int,
) -> Result:
    """Write evenly spaced rows of the eigenvectors, and some that are long."""
    rows = read_block(storage, partition, {"columns": []}, vectors)
    size, n_nodes, start = even
    arrays = {"even": rows[spaced_rows(n_nodes, size, start, start + len(rows))]}
    lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    n_long = min(n_long, int(np.count_nonzero(lengths)))
    rng = np.random.default_rng([seed, partition, 2])
    chosen = np.empty(0, np.intp)
    if n_long:
        chosen = rng.choice(len(rows), n_long, replace=False, p=lengths / lengths.sum())
    arrays["long"] = rows[np.sort(chosen)]
    storage.write_several(f"labels-sample/{partition:05d}.npz", **arrays)
    return {}


def find_rotations(storage: Storage, n_partitions: int, n_clusters: int) -> Result:
    """Write the rotation of the plain cut, and that of the cut into pieces."""
    parts = [storage.read_several(f"labels-sample/{p:05d}.npz") for p in range(n_partitions)]
    even = np.concatenate([part["even"] for part in parts])
    long = np.concatenate([part["long"] for part in parts])
    long = long if len(long) else even
    directions = unit_rows(np.ascontiguousarray(even[:, :n_clusters]))
    plain = discretizing_rotation(directions, pivoted_rotation(long[:, :n_clusters]), 1)
    storage.write_several("labels-sample/rotations.npz", plain=plain, pieces=pivoted_rotation(long))
    return {}


def assign_part(
    storage: Storage, partition: int, vectors: dict[str, Any], n_clusters: int
) -> Result:
    """Write the labels of the plain cut, and the pieces."""
    rows = read_block(storage, partition, {"columns": []}, vectors)
    rotations = storage.read_several("labels-sample/rotations.npz")
    plain = nearest_axis(
        unit_rows(np.ascontiguousarray(rows[:, :n_clusters])), rotations["plain"], 1
    )
    pieces = nearest_axis(unit_rows(rows), rotations["pieces"], 1)
    storage.write(f"labels-0/{partition:05d}.npy", np.stack([plain, pieces], axis=1))
    return {}


def read_labels(storage: Storage, folder: str, partition: int) -> NDArray[Any]:
    """Read the labels of both cuts."""
    return np.array(storage.read(f"{folder}/{partition:05d}.npy"))


def _label_steps(
    flow: Flow, graph: RowGraph, folder: str
) -> tuple[list[Step], list[list[Step]], list[list[tuple[int, Step]]]]:
    own = graph.load(flow, read_labels, folder=folder)
    wanted = graph.wanted(flow)
    return own, exchange(flow, own, wanted), wanted


def _settle(
    graph: RowGraph,
    n_clusters: int,
    joined: NDArray[np.intp],
    volumes: list[NDArray[np.float64]],
) -> list[int]:
    """Let nodes move to the clusters of their neighbours; return each cut's last round."""
    plain = {"source": "labels-0", "target": "labels-1", "joined": joined.tolist()}
    graph.engine.run_each("labels-join", graph.n_partitions, join_part, plain)
    final, moving = [1, 1], [True, True]
    for number in range(1, SETTLING_ROUNDS + 1):
        flow = Flow()
        own, halos, wanted = _label_steps(flow, graph, f"labels-{number}")
        parts = graph.parts(flow)
        near = [
            flow.add(near_clusters, part, one, *halo, volumes=[v.tolist() for v in volumes])
            for part, one, halo in zip(parts, own, halos, strict=True)
        ]
        around = exchange(flow, near, wanted, take_pair)
        plain = {"target": f"labels-{number + 1}", "moving": moving}
        tasks = [
            Task(
                f"{p:05d}",
                move_part,
                {"partition": p} | plain,
                (parts[p], own[p], near[p], *around[p]),
            )
            for p in range(graph.n_partitions)
        ]
        found = graph.engine.run(f"labels-settle-{number}", tasks, flow=flow)
        n_moved = np.sum([one["n_moved"] for one in found], axis=0)
        for cut in range(2):
            sizes = _padded_sum([one["sizes"][cut] for one in found], n_clusters)
            if not n_moved[cut] or not sizes.all():
                moving[cut] = False
            if moving[cut]:
                final[cut] = number + 1
                volumes[cut] = _padded_sum([one["volumes"][cut] for one in found], n_clusters)
        if not any(moving):
            break
    return final


def join_part(
    storage: Storage, partition: int, source: str, target: str, joined: list[int]
) -> Result:
    """Write the labels of the plain cut, and the clusters of joined pieces."""
    labels = read_labels(storage, source, partition)
    labels[:, 1] = np.asarray(joined)[labels[:, 1]]
    storage.write(f"{target}/{partition:05d}.npy", labels)
    return {}


def near_clusters(
    part: csr_array, own: NDArray[Any], *halo: NDArray[Any], volumes: list[list[float]]
) -> list[csr_array]:
    """Return how strongly one step along the graph ties nodes to the clusters of both cuts."""
    around = stack_rows(own, *halo)
    found = []
    for cut, sizes in enumerate(volumes):
        members = label_matrix(around[:, cut], len(sizes))
        members.data = members.data * volume_roots(np.array(sizes))[members.indices]
        found.append(csr_array(part @ members))
    return found


def take_pair(near: list[csr_array], rows: NDArray[np.int64]) -> list[csr_array]:
    """Return some rows of both matrices."""
    return [take_rows(one, rows) for one in near]


def move_part(
    storage: Storage,
    part: csr_array,
    own: NDArray[Any],
    near: list[csr_array],
    *halo: list[csr_array],
    partition: int,
    target: str,
    moving: list[bool],
) -> Result:
    """Move nodes to the cluster to which one and two steps along the graph lead."""
    labels = own.copy()
    degrees = np.asarray(part.sum(axis=1), np.float64).ravel()
    for cut in range(2):
        if moving[cut]:
            around = stack_rows(near[cut], *(one[cut] for one in halo))
            ties = csr_array(near[cut] + part @ around)
            labels[:, cut] = strongest_cluster(ties, own[:, cut])
    storage.write(f"{target}/{partition:05d}.npy", labels)
    return {
        "n_moved": np.count_nonzero(labels != own, axis=0).tolist(),
        "sizes": [np.bincount(labels[:, cut]).tolist() for cut in range(2)],
        "volumes": [np.bincount(labels[:, cut], degrees).tolist() for cut in range(2)],
    }


def _information(graph: RowGraph, n_clusters: int, cut: int, number: int) -> float:
    """Return how much information a settled cut keeps."""
    stage = f"labels-kept-{cut}"
    edges, sizes, _ = cluster_links(graph, f"labels-{number}", cut, stage, n_clusters)
    return kept_information(edges, sizes)


def cluster_links(
    graph: RowGraph, folder: str, cut: int, stage: str, n_clusters: int
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return the edges between clusters, their sizes, and the volumes of the plain cut's."""
    flow = Flow()
    own, halos, _ = _label_steps(flow, graph, folder)
    plain = {"folder": graph.folder, "cut": cut, "target": stage, "n_clusters": n_clusters}
    tasks = [
        Task(f"{p:05d}", link_clusters, {"partition": p} | plain, (one, *halo))
        for p, (one, halo) in enumerate(zip(own, halos, strict=True))
    ]
    found = graph.engine.run(stage, tasks, flow=flow)
    edges = sum_files(graph.engine.storage, f"{stage}/{{p:05d}}.npy", graph.n_partitions)
    sizes, volumes = (np.sum([one[key] for one in found], axis=0) for key in ("sizes", "volumes"))
    return edges, sizes, volumes


def link_clusters(
    storage: Storage,
    own: NDArray[Any],
    *halo: NDArray[Any],
    partition: int,
    folder: str,
    cut: int,
    target: str,
    n_clusters: int,
) -> Result:
    """Write the edges between the clusters of a cut; return their volumes and sizes."""
    graph = read_rows(storage, folder, partition)
    around = stack_rows(own, *halo)[:, cut]
    members = label_matrix(own[:, cut], n_clusters)
    edges = members.T @ (graph @ label_matrix(around, n_clusters))
    storage.write(f"{target}/{partition:05d}.npy", edges.toarray())
    degrees = np.asarray(graph.sum(axis=1), np.float64).ravel()
    return {
        "volumes": np.bincount(own[:, 0], degrees, n_clusters).tolist(),
        "sizes": np.bincount(own[:, cut], minlength=n_clusters).tolist(),
    }


def _direction_sums(
    graph: RowGraph, vectors: dict[str, Any], folder: str, cut: int, n_clusters: int
) -> NDArray[np.float64]:
    plain = {"vectors": vectors, "folder": folder, "cut": cut, "n_clusters": n_clusters}
    engine, n_parts = graph.engine, graph.n_partitions
    engine.run_each("labels-directions", n_parts, sum_directions, plain)
    return sum_files(engine.storage, "labels-directions/{p:05d}.npy", n_parts)


def sum_directions(
    storage: Storage,
    partition: int,
    vectors: dict[str, Any],
    folder: str,
    cut: int,
    n_clusters: int,
) -> Result:
    """Write the sum of the eigenvectors' directions over every cluster."""
    rows = unit_rows(read_block(storage, partition, {"columns": []}, vectors))
    labels = storage.read(f"{folder}/{partition:05d}.npy")[:, cut]
    storage.write(f"labels-directions/{partition:05d}.npy", cluster_sums(rows, labels, n_clusters))
    return {}


def _padded_sum(parts: list[list[float]], n: int) -> NDArray[np.float64]:
    total = np.zeros(n)
    for part in parts:
        total[: len(part)] += part
    return total
