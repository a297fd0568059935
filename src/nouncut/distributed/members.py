"""Who belongs to which cluster, in a run with too many images for one machine's memory.

Tasks of partitions reduce what they know to a few numbers per cluster; tasks of shards write their
parts of the tables.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.distributed.cells import Coupling
from nouncut.distributed.halo import read_rows
from nouncut.distributed.placing import read_placed
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.distributed.union import around
from nouncut.method.membership import Membership, cluster_membership
from nouncut.runs.contents import membership_columns
from nouncut.runs.exemplars import N_EXEMPLARS
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, IMAGES_SCHEMA, table_of
from nouncut.words.evidence import IMAGES_PER_CLUSTER

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


def write_part(
    storage: Storage,
    shard: int,
    start: int,
    offsets: list[list[int]],
    level: float,
    prefix: str,
    rank: list[int],
) -> Result:
    """Write the tables of one shard's images; `rank` has the final numbers of clusters."""
    parts = [
        storage.read(f"{prefix}members/{partition:05d}.npy", *ends)
        for partition, ends in enumerate(offsets)
        if ends[1] > ends[0]
    ]
    members = np.concatenate([np.empty(0, MEMBER), *parts])
    members = members[np.argsort(members["row"], kind="stable")]
    if prefix:
        members = members[storage.read(f"{prefix}micro/{shard:05d}.npy")]
        for name, column in read_placed(storage, shard)._asdict().items():
            members[name] = column
    # A second choice of -1 is none.
    numbers = np.array([*rank, -1])
    for name in ("label", "second"):
        members[name] = numbers[members[name]]
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
