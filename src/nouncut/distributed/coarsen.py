"""Weighted micro-clusters: few similar images of a shard become one node.

The method then cuts micro-clusters instead of images. Edges between two micro-clusters are
multiplied by both weights: the cut is that of a graph in which each one is as many equal images,
without the edges among them. Images are then placed one by one (`nouncut.distributed.placing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.distributed.cells import Coupling, ShardRows
from nouncut.distributed.fit import Shards
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.errors import ParameterError
from nouncut.method.candidates import assign_cells, cell_centers

COARSE = "coarse"
# More micro-clusters of a shard are made within cells: every row is compared with all centres, and
# the time would grow with the square of the shard.
MOST_CENTERS = 4096
# Images per micro-cluster, at least, and if nobody asks for a number: with fewer, little is gained.
_FEWEST_IMAGES, _IMAGES = 2, 4


def count_micro_clusters(asked: str, sizes: Sizes) -> int | None:
    """Return the number of micro-clusters; None to cut the images themselves."""
    if asked == "never":
        return None
    if asked != "auto":
        wanted = int(asked)
        if not 0 < wanted * _FEWEST_IMAGES <= sizes.n_images:
            raise ParameterError(
                f"`coarsen` must be from 1 to {sizes.n_images // _FEWEST_IMAGES:,}, half of the "
                f"images; got {wanted:,}."
            )
        return wanted
    if sizes.n_images <= sizes.most_nodes:
        return None
    return min(sizes.most_nodes, sizes.n_images // _IMAGES)


@dataclass(frozen=True)
class MicroClusters:
    """Micro-clusters that are cut instead of images; `engine` is that of the images."""

    engine: Engine
    shards: Shards
    coupling: Coupling
    cosine: float  # The mean cosine between images and the centres of their micro-clusters.
    n_landmarks: int  # With how many of them images are compared in the end.


def make_micro_clusters(
    engine: Engine, shards: Shards, n_wanted: int, how: Coupling, n_landmarks: int
) -> MicroClusters:
    """Group the images of every shard; the micro-clusters are shards of their own."""
    share = n_wanted / shards.n_images
    tasks = [
        Task(
            f"{shard:05d}",
            group_shard,
            {"shard": shard, "n_wanted": max(1, round(share * n)), "coupling": how._asdict()},
        )
        for shard, n in enumerate(shards.counts)
    ]
    found = engine.run("micro-clusters", tasks, "grouping similar images")
    if how.has_nouns:
        nouns = engine.storage.read("choices/nouns.npy")
        engine.storage.write(f"{COARSE}/choices/nouns.npy", nouns)
    cosine = sum(one["cosine"] for one in found) / shards.n_images
    coarse = how._replace(has_semantic=how.differs, has_view=False, by_words=False)
    own = Shards([one["n_rows"] for one in found])
    return MicroClusters(engine, own, coarse, cosine, n_landmarks)


def group_shard(storage: Storage, shard: int, n_wanted: int, coupling: dict[str, Any]) -> Result:
    """Write the centres of a shard's micro-clusters, their weights, and who belongs to each."""
    how = Coupling(**coupling)
    features, semantic = ShardRows.read(storage, shard, how).units(how)
    rows = [features, *([semantic] if how.differs else [])]
    micro = group_rows(np.hstack(rows) if how.differs else features, min(n_wanted, len(features)))
    # A shard of broken images has none.
    n_micro = int(micro.max(initial=-1)) + 1
    members = label_matrix(micro, n_micro).astype(np.float32)
    weights = np.bincount(micro, minlength=n_micro)
    means = [np.asarray(members.T @ part) / weights[:, None] for part in rows]
    for name, part in zip(("features", "semantic"), means, strict=False):
        storage.write(f"{COARSE}/{name}/{shard:05d}.npy", part.astype(np.float32))
    cosines = np.einsum("ij,ij->i", features, unit_rows(means[0])[micro])
    storage.write(f"{COARSE}/weights/{shard:05d}.npy", weights)
    storage.write(f"{COARSE}/micro/{shard:05d}.npy", micro.astype(np.int32))
    storage.write(f"{COARSE}/typical/{shard:05d}.npy", _nearest_rows(micro, cosines, n_micro))
    return {"n_rows": len(weights), "cosine": float(cosines.sum())}


def group_rows(rows: NDArray[np.float32], n_wanted: int) -> NDArray[np.intp]:
    """Return the group of every row, of about as many as are wanted; none is empty."""
    n_cells = n_wanted if n_wanted <= MOST_CENTERS else -(-n_wanted // MOST_CENTERS)
    centers = cell_centers(rows.__getitem__, len(rows), n_cells, 1)
    cells = assign_cells(rows.__getitem__, len(rows), centers, 1)
    used, cells = np.unique(cells, return_inverse=True)
    if n_cells == n_wanted or len(used) == 1:
        return cells
    groups, first = np.empty_like(cells), 0
    for cell in range(len(used)):
        own = np.flatnonzero(cells == cell)
        groups[own] = first + group_rows(rows[own], max(1, round(n_wanted * len(own) / len(rows))))
        first = int(groups[own].max()) + 1
    return groups


def _nearest_rows(
    micro: NDArray[np.intp], cosines: NDArray[Any], n_micro: int
) -> NDArray[np.int64]:
    """Return the image that is nearest to the centre of every micro-cluster."""
    order = np.lexsort((-cosines, micro))
    return order[np.searchsorted(micro[order], np.arange(n_micro))]
