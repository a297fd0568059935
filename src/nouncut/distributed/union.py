"""Symmetric graphs as row partitions: one exchange of edges, degrees, and connected parts.

A partition holds all edges of its nodes. Its columns are its own nodes, then the nodes of other
partitions that its edges lead to (the halo), by ascending number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.sparse import entries_in
from nouncut.distributed.cells import Layout
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.distributed.visits import EDGE
from nouncut.method.graphs import even_mean

_TINY_DEGREE = np.finfo(np.float64).tiny


class PartRows(NamedTuple):
    """The rows of a partition in several graphs on one pattern of edges."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    edges: NDArray[np.float32]  # (n_graphs, n_edges)


def unite_edges(
    storage: Storage,
    partition: int,
    attempt: int,
    offsets: list[list[int]],
    sources: list[int],
) -> Result:
    """Keep the edges that either node chose, for the nodes of a partition.

    `sources` are the other partitions that chose nodes of this one, and `offsets` the edges of each
    that lead here.
    """
    layout = Layout.read(storage)
    start, stop = int(layout.starts[partition]), int(layout.starts[partition + 1])
    own = storage.read_several(f"neighbors-{attempt}/{partition:05d}.npz")
    incoming = np.concatenate(
        [np.empty(0, EDGE)]
        + [
            storage.read(f"neighbors-{attempt}/{source:05d}-outgoing.npy", *range_)
            for source, range_ in zip(sources, offsets, strict=True)
        ]
    )
    rows, halo = union_rows(own["indices"], own["values"], incoming, start, stop)
    storage.write_several(f"union/{partition:05d}.npz", **rows._asdict())
    storage.write(f"halo/{partition:05d}.npy", halo)
    graph = csr_array(
        (np.ones(len(rows.indices), np.int8), rows.indices, rows.indptr),
        shape=(stop - start, stop - start + len(halo)),
    )
    component = connected_components(graph[:, : stop - start], directed=False)[1]
    storage.write(f"components/{partition:05d}.npy", component.astype(np.int32))
    return {
        "n_edges": len(rows.indices),
        "n_halo": len(halo),
        "offsets": np.searchsorted(halo, layout.starts).tolist(),
    }


def union_rows(
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    incoming: NDArray[Any],
    start: int,
    stop: int,
) -> tuple[PartRows, NDArray[np.int64]]:
    """Return the symmetric rows of the nodes from `start` to `stop`, and their halo.

    `indices` and `values` (n_graphs, n_nodes, q) are what these nodes chose; `incoming` are the
    edges with which nodes of other partitions chose them.
    """
    n_graphs, n_nodes = len(indices), stop - start
    outside = [indices[(indices >= 0) & ((indices < start) | (indices >= stop))]]
    halo = np.unique(np.concatenate([*outside, incoming["source"]])).astype(np.int64)

    def places(nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        found = nodes - np.int32(start)
        is_outside = (nodes < start) | (nodes >= stop)
        found[is_outside] = n_nodes + np.searchsorted(halo, nodes[is_outside])
        return found

    shape = (n_nodes, n_nodes + len(halo))
    graphs = []
    for number in range(n_graphs):
        is_there = indices[number] >= 0
        # Numbers of 64 bits would double the memory that this takes.
        rows = np.repeat(np.arange(n_nodes, dtype=np.int32), is_there.sum(axis=1))
        chosen, value = places(indices[number][is_there]), values[number][is_there]
        inside = chosen < n_nodes
        far = incoming[incoming["prompt"] == number]
        back = (
            np.concatenate([value[inside], far["value"]]),
            (
                np.concatenate([chosen[inside], far["target"] - np.int32(start)]),
                np.concatenate([rows[inside], places(far["source"])]),
            ),
        )
        forth = csr_array((value, (rows, chosen)), shape=shape)
        graphs.append(csr_array(forth.maximum(csr_array(back, shape=shape))))
    pattern = even_mean(graphs)
    edges = entries_in(pattern, graphs).astype(np.float32)
    found = PartRows(pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32), edges)
    return found, halo


def link_components(storage: Storage, partition: int) -> Result:
    """Find which connected parts of this and other partitions are one, and their sizes."""
    layout = Layout.read(storage)
    own = storage.read(f"components/{partition:05d}.npy")
    halo = storage.read(f"halo/{partition:05d}.npy")
    rows = storage.read_several(f"union/{partition:05d}.npz")
    n_nodes = len(own)
    sources = np.repeat(np.arange(n_nodes), np.diff(rows["indptr"]))
    far = rows["indices"] >= n_nodes
    targets = halo[rows["indices"][far] - n_nodes]
    owners = np.searchsorted(layout.starts, targets, side="right") - 1
    links = []
    for other in np.unique(owners).tolist():
        theirs = storage.read(f"components/{other:05d}.npy")
        mine = owners == other
        ends = own[sources[far][mine]], theirs[targets[mine] - layout.starts[other]]
        pairs = np.unique(np.stack(ends, axis=1), axis=0)
        links.append(np.insert(pairs, 1, other, axis=1))
    storage.write(
        f"links/{partition:05d}.npy",
        np.concatenate([np.empty((0, 3), np.int64), *links]).astype(np.int64),
    )
    sizes = np.bincount(own)
    storage.write(f"links/sizes-{partition:05d}.npy", sizes)
    return {"n_components": len(sizes)}


def kept_components(
    sizes: list[NDArray[np.int64]], links: list[NDArray[np.int64]], n_clusters: int
) -> tuple[list[NDArray[np.bool_]], int, int]:
    """Return which parts of every partition can be cut, and the numbers of nodes left out.

    The rule is that of `nouncut.method.graphs.excluded_images`. The second number counts nodes
    without any edge.
    """
    firsts = np.concatenate([[0], np.cumsum([len(part) for part in sizes])])
    ends = [
        np.stack([firsts[p] + part[:, 0], firsts[part[:, 1]] + part[:, 2]])
        for p, part in enumerate(links)
    ]
    rows, columns = np.concatenate([np.empty((2, 0), np.int64), *ends], axis=1)
    shape = (int(firsts[-1]),) * 2
    graph = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)
    whole = connected_components(graph, directed=False)[1]
    totals = np.bincount(whole, np.concatenate(sizes)).astype(np.int64)
    keeps = totals > 1
    if keeps.sum() > n_clusters:
        keeps &= totals >= totals.sum() / (10 * n_clusters)
        largest = np.argsort(-totals, kind="stable")[:n_clusters]
        keeps &= np.isin(np.arange(len(totals)), largest)
    if totals[keeps].sum() < n_clusters:
        keeps[:] = True
    parts = np.split(keeps[whole], firsts[1:-1])
    return parts, int(totals[~keeps].sum()), int(np.sum(totals == 1))


def cut_off(storage: Storage, partition: int) -> Result:
    """Remove the edges of nodes that are left out of the cut; return the others' degrees."""
    rows = PartRows(**storage.read_several(f"union/{partition:05d}.npz"))
    keeps = storage.read(f"links/keeps-{partition:05d}.npy")
    is_cut = keeps[storage.read(f"components/{partition:05d}.npy")]
    if not is_cut.all():
        counts = np.diff(rows.indptr)
        kept = np.repeat(is_cut, counts)
        indptr = np.concatenate([[0], np.cumsum(np.where(is_cut, counts, 0))])
        rows = PartRows(indptr, rows.indices[kept], rows.edges[:, kept])
    rows = _weighted(storage, partition, rows)
    storage.write_several(f"raw/{partition:05d}.npz", **rows._asdict())
    storage.write(f"is_cut/{partition:05d}.npy", is_cut)
    storage.write(f"degrees/{partition:05d}.npy", row_sums(rows))
    return {"n_cut": int(is_cut.sum())}


def _weighted(storage: Storage, partition: int, rows: PartRows) -> PartRows:
    """Multiply edges by what both nodes weigh, if nodes are micro-clusters."""
    if storage.size("weights/00000.npy") is None:
        return rows
    own = storage.read(f"nodes/{partition:05d}/weights.npy")
    every = around(storage, partition, "nodes", own, "/weights").astype(np.float32)
    owners = np.repeat(np.arange(len(own)), np.diff(rows.indptr))
    return rows._replace(edges=rows.edges * every[owners] * every[rows.indices])


def row_sums(rows: PartRows) -> NDArray[np.float64]:
    """Return the degrees (n_nodes, n_graphs)."""
    owners = np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))
    n_nodes = len(rows.indptr) - 1
    return np.stack([np.bincount(owners, edges, n_nodes) for edges in rows.edges], axis=1)


def normalize_part(
    storage: Storage, partition: int, source: str, degrees: str, target: str
) -> Result:
    """Divide every edge by the roots of the degrees of both nodes."""
    rows = PartRows(**storage.read_several(f"{source}/{partition:05d}.npz"))
    own = storage.read(f"{degrees}/{partition:05d}.npy")
    roots = 1 / np.sqrt(np.maximum(around(storage, partition, degrees, own), _TINY_DEGREE))
    owners = np.repeat(np.arange(len(own)), np.diff(rows.indptr))
    edges = np.empty_like(rows.edges)
    for number, values in enumerate(rows.edges):
        root = roots[:, number]
        edges[number] = root[owners] * values * root[rows.indices]
    storage.write_several(f"{target}/{partition:05d}.npz", **rows._replace(edges=edges)._asdict())
    wide = edges.astype(np.float64)
    return {"gram": (wide @ wide.T).tolist()}


def average_part(
    storage: Storage, partition: int, weights: list[float], source: str, target: str
) -> Result:
    """Write the weighted mean of the graphs, and its degrees."""
    rows = PartRows(**storage.read_several(f"{source}/{partition:05d}.npz"))
    mean = (np.asarray(weights) @ rows.edges).astype(np.float32)[None]
    rows = rows._replace(edges=mean)
    storage.write_several(f"{target}/{partition:05d}.npz", **rows._asdict())
    storage.write(f"{target}/degrees/{partition:05d}.npy", row_sums(rows))
    return {}


def around(
    storage: Storage, partition: int, folder: str, own: NDArray[Any], name: str = ""
) -> NDArray[Any]:
    """Return values of the nodes of a partition and of its halo; `folder` has those of all."""
    layout, halo = Layout.read(storage), storage.read(f"halo/{partition:05d}.npy")
    offsets = np.searchsorted(halo, layout.starts)
    parts = [np.asarray(own)]
    for other, (a, b) in enumerate(pairwise(offsets)):
        if b > a:
            theirs = storage.read(f"{folder}/{other:05d}{name}.npy")
            parts.append(theirs[halo[a:b] - layout.starts[other]])
    return np.concatenate(parts)
