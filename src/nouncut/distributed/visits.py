"""Nodes that look for neighbours in cells far from their own, and what they bring home."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.distributed.cells import Coupling, Layout
from nouncut.distributed.near import VISITS, CellMeans, visited_cells
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage

# A neighbour (target) that a node (source) has found.
EDGE = np.dtype([("source", "<i4"), ("target", "<i4"), ("value", "<f4"), ("prompt", "<i2")])
_ROWS_AT_ONCE = 1024
# Nodes whose edges are joined at once: an image may bring home three times the edges that it had.
_NODES_AT_ONCE = 16_384


class Visitors(NamedTuple):
    """Nodes with their rows, and the cells that they visit."""

    nodes: NDArray[np.int64]
    cells: NDArray[np.int64]
    features: NDArray[np.float32]
    factors: list[NDArray[np.float32]]
    semantic: NDArray[np.float32] | None

    def part(self, rows: slice) -> Visitors:
        """Return some of the visitors."""
        semantic = None if self.semantic is None else self.semantic[rows]
        factors = [part[rows] for part in self.factors]
        return Visitors(self.nodes[rows], self.cells[rows], self.features[rows], factors, semantic)


def send_visitors(
    storage: Storage, partition: int, attempt: int, coupling: dict[str, Any]
) -> Result:
    """Write the visitors from a partition, sorted by the cells that they visit.

    Also writes its nodes on which the recall is measured, which every search compares with its own.
    """
    how, layout, means = Coupling(**coupling), Layout.read(storage), CellMeans.read(storage)
    near = np.asarray(storage.read(f"cells/near-{attempt}.npy"))
    names = ["features"] + ["factors"] * how.has_nouns + ["semantic"] * how.differs
    parts = {name: storage.read(f"nodes/{partition:05d}/{name}.npy") for name in names}
    start, stop = layout.starts[partition], layout.starts[partition + 1]
    own = np.searchsorted(layout.cells, np.arange(start, stop), side="right") - 1
    found = []
    for first in range(0, stop - start, _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        kernel = means.kernel(*(parts[name][some] for name in names if name != "semantic"))
        found.append(visited_cells(kernel, own[some], near))
    visits = np.concatenate([np.empty((0, VISITS), np.intp), *found])
    rows, numbers = np.nonzero(visits >= 0)
    cells = visits[rows, numbers]
    order = np.argsort(cells, kind="stable")
    rows, cells = rows[order], cells[order]
    folder = f"visits-{attempt}/{partition:05d}"
    for name in names:
        storage.write(f"{folder}/{name}.npy", parts[name][rows])
    storage.write(f"{folder}/nodes.npy", start + rows)
    storage.write(f"{folder}/ends.npy", np.searchsorted(cells, np.arange(means.n_cells + 1)))
    checked = np.asarray(storage.read("checked.npy"))
    checked = checked[(checked >= start) & (checked < stop)]
    kept = {name: parts[name][checked - start] for name in names if name != "factors"}
    storage.write_several(f"{folder}/checked.npz", nodes=checked, **kept)
    return {"n_visits": len(rows)}


def read_visitors(
    storage: Storage, layout: Layout, attempt: int, first_cell: int, last_cell: int, how: Coupling
) -> Visitors:
    """Return the visitors of a range of cells from all partitions."""
    folders = [f"visits-{attempt}/{p:05d}" for p in range(layout.n_partitions)]
    ends = [storage.read(f"{one}/ends.npy", first_cell, last_cell + 1) for one in folders]

    def rows(name: str) -> NDArray[Any]:
        parts = [
            storage.read(f"{folder}/{name}.npy", int(own[0]), int(own[-1]))
            for folder, own in zip(folders, ends, strict=True)
            if own[-1] > own[0] or folder is folders[0]
        ]
        return np.concatenate(parts)

    cells = [np.repeat(np.arange(first_cell, last_cell), np.diff(own)) for own in ends]
    factors = [rows("factors")] if how.has_nouns else []
    semantic = rows("semantic") if how.differs else None
    return Visitors(rows("nodes"), np.concatenate(cells), rows("features"), factors, semantic)


def read_checked(storage: Storage, layout: Layout, attempt: int) -> Visitors:
    """Return the nodes on which the recall is measured."""
    parts = [
        storage.read_several(f"visits-{attempt}/{p:05d}/checked.npz")
        for p in range(layout.n_partitions)
    ]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    nowhere = np.empty(0, np.int64)
    return Visitors(found["nodes"], nowhere, found["features"], [], found.get("semantic"))


def bring_home(
    storage: Storage,
    partition: int,
    attempt: int,
    groups: list[int],
    sources: list[str],
    offsets: list[list[int]],
) -> Result:
    """Join what the nodes of a partition have found at home and on visits.

    `sources` are the groups that nodes of this partition visited, and `offsets` what they found in
    each. Edges to other partitions are written once more, sorted by partition.
    """
    layout, folder = Layout.read(storage), f"neighbors-{attempt}"
    own = [storage.read_several(f"{folder}/{partition:05d}-{group:03d}.npz") for group in groups]
    indices = np.concatenate([part["indices"] for part in own], axis=1)
    values = np.concatenate([part["values"] for part in own], axis=1)
    brought = [
        storage.read(f"{folder}/{source}-visitors.npy", *ends)
        for source, ends in zip(sources, offsets, strict=True)
    ]
    start = int(layout.starts[partition])
    for first in range(0, indices.shape[1], _NODES_AT_ONCE):
        some = slice(first, first + _NODES_AT_ONCE)
        found = [_edges_of(part, start + first, start + some.stop) for part in brought]
        edges = np.concatenate([np.empty(0, EDGE), *found])
        add_found(indices[:, some], values[:, some], edges, start + first)
    storage.write_several(f"{folder}/{partition:05d}.npz", indices=indices, values=values)
    outgoing, ends = _outgoing(indices, values, layout, partition)
    storage.write(f"{folder}/{partition:05d}-outgoing.npy", outgoing)
    return {"offsets": ends}


def _edges_of(edges: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Return the edges from a range of nodes; they are sorted by node."""
    return edges[slice(*np.searchsorted(edges["source"], [first, last]))]


def add_found(
    indices: NDArray[np.int32], values: NDArray[np.float32], found: NDArray[Any], start: int
) -> None:
    """Replace neighbours (n_prompts, n_nodes, q) by larger ones among the found edges."""
    q = indices.shape[2]
    for prompt in range(len(indices)):
        edges = found[found["prompt"] == prompt]
        rows = np.unique(edges["source"]) - start
        here = np.repeat(np.arange(len(rows)), q)
        row = np.concatenate([here, np.searchsorted(rows, edges["source"] - start)])
        target = np.concatenate([indices[prompt][rows].ravel(), edges["target"]])
        value = np.concatenate([values[prompt][rows].ravel(), edges["value"]])
        # The same neighbour may be found twice, with values that differ in the last digit.
        order = np.lexsort((-value, target, row))
        row, target, value = row[order], target[order], value[order]
        is_new = np.ones(len(row), bool)
        is_new[1:] = (np.diff(row) != 0) | (np.diff(target) != 0) | (target[1:] < 0)
        row, target, value = row[is_new], target[is_new], value[is_new]
        order = np.lexsort((target, -value, row))
        row, target, value = row[order], target[order], value[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        kept = place < q
        indices[prompt][rows[row[kept]], place[kept]] = target[kept]
        values[prompt][rows[row[kept]], place[kept]] = value[kept]


def _outgoing(
    indices: NDArray[np.int32], values: NDArray[np.float32], layout: Layout, partition: int
) -> tuple[NDArray[Any], list[int]]:
    """Return the edges to nodes of other partitions, sorted by partition, and where each begins."""
    low, high = layout.starts[partition], layout.starts[partition + 1]
    prompts, rows, places = np.nonzero((indices >= 0) & ((indices < low) | (indices >= high)))
    edges = np.empty(len(rows), EDGE)
    edges["source"], edges["target"] = low + rows, indices[prompts, rows, places]
    edges["value"], edges["prompt"] = values[prompts, rows, places], prompts
    edges = edges[np.argsort(edges["target"], kind="stable")]
    return edges, np.searchsorted(edges["target"], layout.starts).tolist()
