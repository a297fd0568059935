"""The nearest images of the nodes of a few cells, among all images of near cells.

As on one machine: candidates by the mean prompt with its noun probabilities in few dimensions, then
the exact kernels of all prompts. The recall is measured on some nodes against all other nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.pairs import pair_products
from nouncut.distributed.cells import Coupling, Layout, NodeReader, kernel_of
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.method.kernel import Kernel
from nouncut.method.neighbors import (
    BLOCK_SIZE,
    Nearest,
    keep_largest,
    neighbor_keys,
    search_blocks,
)
from nouncut.method.search import noun_parts

# An edge that its target has to hear of.
EDGE = np.dtype([("source", "<i4"), ("target", "<i4"), ("value", "<f4"), ("prompt", "<i2")])
_ROWS_AT_ONCE = 4096


def find_neighbors(
    storage: Storage,
    partition: int,
    group: int,
    first_cell: int,
    last_cell: int,
    q: int,
    n_candidates: int,
    attempt: int,
    most_bytes: int,
    coupling: dict[str, Any],
) -> Result:
    """Find the q nearest nodes under every prompt for all nodes of a range of cells."""
    how, layout = Coupling(**coupling), Layout.read(storage)
    cells, blocks, n_own = _cells_around(storage, layout, first_cell, last_cell, attempt)
    if not n_own:
        return {"n_own": 0, "offsets": [0] * (layout.n_partitions + 1)}
    names = np.concatenate([np.arange(layout.cells[c], layout.cells[c + 1]) for c in cells])
    features = _read_cells(storage, layout, "features", cells)
    factors = [_read_cells(storage, layout, "factors", cells)] if how.has_nouns else []
    n_candidates = min(n_candidates, len(names) - 1)
    found = search_blocks(features, factors, n_candidates, blocks, n_rows=n_own)[0].sorted().indices
    del factors
    # Only candidates are needed from here on.
    used = np.unique(np.concatenate([np.arange(n_own), found[found >= 0]]))
    chosen = np.where(found >= 0, np.searchsorted(used, found), -1)
    names, features = names[used], features[used]
    semantic = _read_cells(storage, layout, "semantic", cells)[used] if how.differs else None
    kernel, checked = _with_checked(storage, layout, features, semantic, how)
    nearest, true = _rank(kernel, chosen, names, n_own, checked, q, most_bytes)
    indices, values = (np.stack(part) for part in zip(*nearest, strict=True))
    outgoing, offsets = _outgoing(indices, values, names[:n_own], layout, partition)
    place = f"neighbors-{attempt}/{partition:05d}-{group:03d}"
    storage.write_several(f"{place}.npz", indices=indices, values=values)
    storage.write(f"{place}-outgoing.npy", outgoing)
    storage.write(f"{place}-checked.npy", true)
    return {"n_own": n_own, "offsets": offsets}


def _cells_around(
    storage: Storage, layout: Layout, first_cell: int, last_cell: int, attempt: int
) -> tuple[list[int], list[tuple[slice, slice]], int]:
    """Return own and near cells, blocks of their nodes to compare, and the number of own nodes."""
    near = storage.read(near_file(attempt))
    # Cells are near if either says so.
    rows, columns = np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
    own = np.arange(first_cell, last_cell)
    is_own_row = (rows >= first_cell) & (rows < last_cell)
    is_own_column = (columns >= first_cell) & (columns < last_cell)
    pairs = np.concatenate(
        [
            np.stack([rows[is_own_row], columns[is_own_row]], axis=1),
            np.stack([columns[is_own_column], rows[is_own_column]], axis=1),
            np.stack([own, own], axis=1),
        ]
    )
    pairs = np.unique(pairs, axis=0)
    cells = np.concatenate([own, np.setdiff1d(pairs[:, 1], own)]).tolist()
    sizes = np.diff(layout.cells)[cells]
    starts = dict(zip(cells, (np.cumsum(sizes) - sizes).tolist(), strict=True))
    place = {cell: number for number, cell in enumerate(cells)}
    # The nearest cells first: their nodes leave little work for the others.
    pairs = pairs[np.argsort(np.abs(pairs[:, 0] - pairs[:, 1]), kind="stable")]
    blocks: list[tuple[slice, slice]] = []
    for a, b in pairs.tolist():
        if first_cell <= b < last_cell and b < a:
            continue  # A block of own nodes serves both sides.
        rows_of, columns_of = (_chunks(starts[c], int(sizes[place[c]])) for c in (a, b))
        blocks += [
            (row, column)
            for row in rows_of
            for column in columns_of
            if a != b or column.start >= row.start
        ]
    return cells, blocks, int(layout.cells[last_cell] - layout.cells[first_cell])


def near_file(attempt: int) -> str:
    """Return the file with the near cells of every cell."""
    return f"cells/near-{attempt}.npy"


def _chunks(start: int, size: int) -> list[slice]:
    stop = start + int(size)
    return [slice(a, min(a + BLOCK_SIZE, stop)) for a in range(start, stop, BLOCK_SIZE)]


def _read_cells(storage: Storage, layout: Layout, name: str, cells: list[int]) -> NDArray[Any]:
    """Return the rows of all nodes of some cells; consecutive cells are read together."""
    read, numbers = NodeReader(storage, layout), np.array(cells)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    ends = [(int(layout.cells[run[0]]), int(layout.cells[run[-1] + 1])) for run in runs]
    total = sum(b - a for a, b in ends)
    found, at = None, 0
    for a, b in ends:
        if b > a:
            rows = read(name, a, b)
            if found is None:
                found = np.empty((total, *rows.shape[1:]), rows.dtype)
            found[at : at + len(rows)] = rows
            at += len(rows)
    assert found is not None
    return found


def _with_checked(
    storage: Storage,
    layout: Layout,
    features: NDArray[Any],
    semantic: NDArray[Any] | None,
    how: Coupling,
) -> tuple[Kernel, NDArray[np.int64]]:
    """Return the kernel of nodes with the checked nodes after them, and the latter's numbers."""
    checked, read = np.asarray(storage.read("checked.npy")), NodeReader(storage, layout)

    def extended(name: str, rows: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([rows, *(read(name, int(node), int(node) + 1) for node in checked)])

    features = extended("features", features)
    semantic = None if semantic is None else extended("semantic", semantic)
    return kernel_of(storage, how, features, semantic), checked


def _rank(
    kernel: Kernel,
    chosen: NDArray[np.intp],
    names: NDArray[np.int64],
    n_own: int,
    checked: NDArray[np.int64],
    q: int,
    most_bytes: int,
) -> tuple[list[tuple[NDArray[np.int32], NDArray[np.float32]]], NDArray[np.uint64]]:
    """Return neighbours and values of every prompt, and keys of the checked nodes' neighbours.

    The latter, (n_prompts, n_checked, q), are the exact neighbours among the own nodes.
    """
    present = chosen >= 0
    indptr = np.zeros(len(kernel.features) + 1, np.int64)
    indptr[1 : n_own + 1] = np.cumsum(present.sum(axis=1))
    indptr[n_own + 1 :] = indptr[n_own]
    shape = (len(kernel.features),) * 2
    pairs = csr_array((np.ones(int(indptr[-1]), np.int8), chosen[present], indptr), shape=shape)
    cosines = pair_products(pairs, kernel.features)
    last = np.arange(len(names), len(names) + len(checked))
    checked_cosines = kernel.features[last] @ kernel.features[:n_own].T
    # A node is not its own neighbour.
    is_same = checked[:, None] == names[None, :n_own]
    nearest, true = [], []
    for prompt in range(max(1, len(kernel.prompts))):
        values: Any = 0
        overlaps: Any = 1
        for packed, found in noun_parts(kernel, prompt, last, most_bytes, 1):
            values += pair_products(pairs, packed) if packed else 1
            overlaps = found[:, :n_own] if isinstance(found, np.ndarray) else found
        nearest.append(_largest(values * cosines, chosen, present, names, q))
        exact = np.where(is_same, 0, checked_cosines * overlaps).astype(np.float32)
        true.append(_true_keys(exact, names[:n_own], q))
    return nearest, np.stack(true)


def _largest(
    values: NDArray[np.float32],
    chosen: NDArray[np.intp],
    present: NDArray[np.bool_],
    names: NDArray[np.int64],
    q: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the q candidates with the largest values for every own node."""
    filled = np.zeros(chosen.shape, np.float32)
    filled[present] = values
    nearest = Nearest.empty(len(chosen), q)
    missing = max(0, q - chosen.shape[1])
    for start in range(0, len(chosen), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        keys = neighbor_keys(filled[part], names[chosen[part]])
        keep_largest(nearest, part, np.pad(keys, ((0, 0), (0, missing))))
    found = nearest.sorted()
    return found.indices, found.values


def _true_keys(exact: NDArray[np.float32], names: NDArray[np.int64], q: int) -> NDArray[np.uint64]:
    keys = neighbor_keys(np.ascontiguousarray(exact), np.broadcast_to(names, exact.shape))
    keys = np.pad(keys, ((0, 0), (0, max(0, q - keys.shape[1]))))
    return -np.sort(-keys.view(np.int64), axis=1)[:, :q].view(np.uint64)


def _outgoing(
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    names: NDArray[np.int64],
    layout: Layout,
    partition: int,
) -> tuple[NDArray[Any], list[int]]:
    """Return the edges to nodes of other partitions, sorted by partition, and where each begins."""
    low, high = layout.starts[partition], layout.starts[partition + 1]
    prompts, rows, places = np.nonzero((indices >= 0) & ((indices < low) | (indices >= high)))
    edges = np.empty(len(rows), EDGE)
    edges["source"], edges["target"] = names[rows], indices[prompts, rows, places]
    edges["value"], edges["prompt"] = values[prompts, rows, places], prompts
    edges = edges[np.argsort(edges["target"], kind="stable")]
    return edges, np.searchsorted(edges["target"], layout.starts).tolist()


def merge_checked(parts: list[NDArray[np.uint64]], q: int) -> NDArray[np.uint64]:
    """Return the q largest keys of the checked nodes over all groups of cells."""
    keys = np.concatenate(parts, axis=2).view(np.int64)
    return np.sort(keys, axis=2)[:, :, ::-1][:, :, :q].view(np.uint64)


def measure_recall(found: NDArray[np.int32], true: NDArray[np.uint64]) -> float:
    """Return the share of true neighbours, given as keys, that were found."""
    flat = Nearest(true.reshape(-1, true.shape[2]), np.empty(0, np.float32)).sorted().indices
    shares = []
    for own, wanted in zip(found.reshape(-1, found.shape[2]), flat, strict=True):
        wanted = wanted[wanted >= 0]
        shares.append(np.isin(wanted, own).mean() if len(wanted) else 1.0)
    return float(np.mean(shares))
