"""Placement of images whose micro-clusters were cut: each joins the cluster of its own neighbours.

Few micro-clusters are pure, so images do not simply take the clusters of theirs. They are compared
with landmarks, evenly spaced micro-clusters, as new images are with those of a fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import spaced_rows
from nouncut.distributed.cells import Coupling, ShardRows, kernel_of
from nouncut.distributed.coarsen import COARSE, MicroClusters
from nouncut.distributed.fit import PartitionedFit, Shards
from nouncut.distributed.result import Finished
from nouncut.distributed.stages import Result, Task
from nouncut.distributed.storage import Storage
from nouncut.method.labels import nearest_center
from nouncut.method.membership import Membership, cluster_membership
from nouncut.method.placement import Placement, place_images

_ROWS_AT_ONCE = 4096


class Placing(NamedTuple):
    """How images are placed; plain, because tasks get it as an argument."""

    n_partitions: int  # Of the micro-clusters.
    n_neighbors: int
    weights: list[float]  # Of the prompts.
    temperature: float
    coupling: dict[str, Any]  # Of the images.

    @classmethod
    def of(cls, fit: PartitionedFit, finished: Finished, how: Coupling) -> Placing:
        """Return how a fit of micro-clusters places images."""
        weights, n_parts = fit.prompts.weights.tolist(), fit.graph.n_partitions
        n_placing, temperature = finished.n_placing, finished.temperature
        return cls(n_parts, n_placing, weights, temperature, how._asdict())


def place_all(
    micro: MicroClusters,
    shards: Shards,
    fit: PartitionedFit,
    placing: Placing,
    typical: list[int],
) -> NDArray[np.int64]:
    """Place the images of all shards; return the sizes of the clusters.

    `typical` has one image of every cluster, which stays there: no cluster becomes empty.
    """
    starts, n_nodes = fit.graph.starts, fit.graph.n_nodes
    plain = {"n_nodes": n_nodes, "size": micro.n_landmarks, "differs": micro.coupling.differs}
    tasks = [
        Task(f"{p:05d}", pick_landmarks, {"partition": p, "start": start} | plain)
        for p, start in enumerate(starts[:-1])
    ]
    fit.graph.engine.run("landmarks", tasks, "placing images")
    tasks = []
    for shard, (start, count) in enumerate(zip(shards.starts, shards.counts, strict=True)):
        fixed = [[row - start, c] for c, row in enumerate(typical) if 0 <= row - start < count]
        own = {"shard": shard, "fixed": fixed, "placing": placing._asdict()}
        tasks.append(Task(f"{shard:05d}", place_shard, own))
    found = micro.engine.run("placing", tasks, "placing images")
    return np.asarray(np.sum([one["sizes"] for one in found], axis=0))


def pick_landmarks(
    storage: Storage, partition: int, start: int, n_nodes: int, size: int, differs: bool
) -> Result:
    """Write evenly spaced nodes of a partition, with what places images."""
    is_cut = storage.read(f"is_cut/{partition:05d}.npy")
    own = spaced_rows(n_nodes, size, start, start + len(is_cut))
    own = own[is_cut[own]]
    weights = storage.read(f"nodes/{partition:05d}/weights.npy")[own]
    names = ["features", *(["semantic"] if differs else [])]
    storage.write_several(
        f"landmarks/{partition:05d}.npz",
        axes=np.asarray(storage.read(f"axes/{partition:05d}.npy"))[own],
        # An edge of an image to a node is multiplied by what the node weighs.
        degrees=storage.read(f"degrees/{partition:05d}.npy")[own] / np.square(weights)[:, None],
        mean=np.asarray(storage.read(f"average/degrees/{partition:05d}.npy"))[own, 0],
        **{name: storage.read(f"nodes/{partition:05d}/{name}.npy")[own] for name in names},
    )
    return {}


def read_landmarks(storage: Storage, placing: Placing) -> Placement:
    """Return what places images, from the storage of the images."""
    numbers = range(placing.n_partitions)
    parts = [storage.read_several(f"{COARSE}/landmarks/{p:05d}.npz") for p in numbers]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    how = Coupling(**placing.coupling)
    return Placement(
        np.arange(len(found["axes"])),
        kernel_of(storage, how, found["features"], found.get("semantic")),
        placing.n_neighbors,
        False,
        found["degrees"].T,
        np.array(placing.weights),
        found["mean"].astype(np.float64),
        found["axes"],
    )


def place_shard(
    storage: Storage, shard: int, fixed: list[list[int]], placing: dict[str, Any]
) -> Result:
    """Write the memberships of a shard's images; return how many are in every cluster.

    `fixed` are images that stay in a cluster: (row, cluster).
    """
    how, stays = Placing(**placing), {pair[0]: pair[1] for pair in fixed}
    centers = storage.read(f"{COARSE}/members/centers.npy")
    nowhere, first = np.empty((0, len(centers))), 0
    parts = [cluster_membership(nowhere, centers, temperature=how.temperature)]
    for directions in place_rows(storage, how, shard):
        labels = nearest_center(directions, centers)
        for row in stays.keys() & range(first, first + len(labels)):
            labels[row - first] = stays[row]
        parts.append(
            cluster_membership(directions, centers, labels=labels, temperature=how.temperature)
        )
        first += len(labels)
    found = Membership(*map(np.concatenate, zip(*parts, strict=True)))
    storage.write_several(placed_file(shard), **found._asdict())
    return {"sizes": np.bincount(found.label, minlength=len(centers)).tolist()}


def place_rows(
    storage: Storage, placing: Placing, shard: int, rows: NDArray[np.int64] | None = None
) -> Iterator[NDArray[np.float64]]:
    """Yield the directions of some images of a shard in the embedding, a block at a time."""
    coupling = Coupling(**placing.coupling)
    placement = read_landmarks(storage, placing)
    features, semantic = ShardRows.read(storage, shard, coupling, rows).units(coupling)
    for first in range(0, len(features), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        yield place_images(placement, features[part], semantic[part])


def read_placed(storage: Storage, shard: int) -> Membership:
    """Return the memberships of a shard's images."""
    return Membership(**storage.read_several(placed_file(shard)))


def placed_file(shard: int) -> str:
    """Return the file with the memberships of a shard's images."""
    return f"{COARSE}/members/images-{shard:05d}.npz"
