"""The nearest images of the nodes of a few cells, among all images of near cells.

As on one machine: candidates by the mean prompt with its noun probabilities in few dimensions, then
the exact kernels of all prompts. Visitors of the cells look for neighbours in the same task. The
recall is measured on some nodes against all other nodes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.pairs import pair_products
from nouncut.distributed.cells import Coupling, Layout, NodeReader, kernel_of
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.distributed.visits import EDGE, Visitors, read_checked, read_visitors
from nouncut.method.kernel import Kernel
from nouncut.method.neighbors import (
    BLOCK_SIZE,
    Nearest,
    keep_largest,
    kernel_neighbors,
    neighbor_keys,
    search_blocks,
)
from nouncut.method.search import noun_parts

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
    """Find the q nearest nodes under every prompt for all nodes and visitors of some cells."""
    layout = Layout.read(storage)
    around = _cells_around(storage, layout, first_cell, last_cell, attempt)
    if not sum(around.sizes.values()):
        return {"n_own": 0, "offsets": [0] * (layout.n_partitions + 1)}
    task = _Task(storage, Coupling(**coupling), layout, q, n_candidates, most_bytes)
    images = task.read(around)
    place = f"neighbors-{attempt}/{partition:05d}-{group:03d}"
    if around.n_own:
        checked = read_checked(storage, layout, attempt)
        indices, values, true = _search_own(task, images, around, checked)
        storage.write_several(f"{place}.npz", indices=indices, values=values)
        storage.write(f"{place}-checked.npy", true)
    visitors = read_visitors(storage, layout, attempt, first_cell, last_cell, task.how)
    edges = _search_visitors(task, images, around, visitors)
    storage.write(f"{place}-visitors.npy", edges)
    offsets = np.searchsorted(edges["source"], layout.starts).tolist()
    return {"n_own": around.n_own, "offsets": offsets}


class _Task(NamedTuple):
    """What all searches of a task have in common."""

    storage: Storage
    how: Coupling
    layout: Layout
    q: int
    n_candidates: int
    most_bytes: int

    def read(self, around: _Around) -> _Images:
        """Read all nodes of some cells."""
        names = np.concatenate([self.layout.nodes(cell) for cell in around.cells])
        read = partial(_read_cells, self.storage, self.layout, cells=around.cells)
        factors = [read("factors")] if self.how.has_nouns else []
        return _Images(
            names, read("features"), factors, read("semantic") if self.how.differs else None
        )


def _search_own(
    task: _Task, images: _Images, around: _Around, checked: Visitors
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint64]]:
    """Return neighbours and values of the own nodes, and keys of the checked ones' neighbours."""
    features, factors = images.features, images.factors
    most = min(task.n_candidates, len(features) - 1)
    found = search_blocks(features, factors, most, around.blocks(), n_rows=around.n_own)[0]
    nearest, true = _rank(task, images, found.sorted().indices, checked, are_visitors=False)
    indices, values = (np.stack(part) for part in zip(*nearest, strict=True))
    return indices, values, true


def _search_visitors(
    task: _Task, images: _Images, around: _Around, visitors: Visitors
) -> NDArray[Any]:
    """Return what visitors find as edges, sorted by visitor."""
    edges = [np.empty(0, EDGE)]
    for start in range(0, len(visitors.nodes), _ROWS_AT_ONCE):
        part = visitors.part(slice(start, start + _ROWS_AT_ONCE))
        chosen = _visit(images, around, part, task.n_candidates)
        nearest, _ = _rank(task, images, chosen, part, are_visitors=True)
        edges += [_edges(part.nodes, *found, prompt) for prompt, found in enumerate(nearest)]
    joined = np.concatenate(edges)
    return joined[np.argsort(joined["source"], kind="stable")]


class _Images(NamedTuple):
    """All nodes that a task reads: their numbers, and their rows."""

    names: NDArray[np.int64]
    features: NDArray[Any]
    factors: list[NDArray[Any]]
    semantic: NDArray[Any] | None


class _Around(NamedTuple):
    """The cells that a task reads, its own first, and which cells are near them."""

    cells: list[int]
    starts: dict[int, int]  # The place of every cell's first node.
    sizes: dict[int, int]
    near: dict[int, list[int]]  # Of the own cells.
    n_own: int

    def places(self, cell: int) -> NDArray[np.int64]:
        """Return the places of all nodes of the cells near an own cell."""
        ranges = [(self.starts[one], self.sizes[one]) for one in self.near[cell]]
        return np.concatenate([np.arange(start, start + size) for start, size in ranges])

    def blocks(self) -> list[tuple[slice, slice]]:
        """Return the blocks of near cells' nodes; those of two own cells serve both."""
        near = self.near
        pairs = [(a, b) for a in near for b in near[a] if not (b < a and a in near.get(b, ()))]
        # The nearest cells first: their nodes leave little work for the others.
        pairs.sort(key=lambda pair: abs(pair[0] - pair[1]))
        return [
            (rows, columns)
            for a, b in pairs
            for rows in _chunks(self.starts[a], self.sizes[a])
            for columns in _chunks(self.starts[b], self.sizes[b])
            if a != b or columns.start >= rows.start
        ]


def _cells_around(
    storage: Storage, layout: Layout, first_cell: int, last_cell: int, attempt: int
) -> _Around:
    near = np.asarray(storage.read(near_file(attempt), first_cell, last_cell))
    own = np.arange(first_cell, last_cell)
    cells = np.concatenate([own, np.setdiff1d(near, own)]).tolist()
    sizes = np.diff(layout.cells)[cells]
    return _Around(
        cells,
        dict(zip(cells, (np.cumsum(sizes) - sizes).tolist(), strict=True)),
        dict(zip(cells, sizes.tolist(), strict=True)),
        dict(zip(own.tolist(), near.tolist(), strict=True)),
        int(layout.cells[last_cell] - layout.cells[first_cell]),
    )


def _visit(
    images: _Images, around: _Around, visitors: Visitors, n_candidates: int
) -> NDArray[np.intp]:
    """Return the candidates of visitors, as places, -1 where there are fewer."""
    chosen = np.full((len(visitors.nodes), n_candidates), -1, np.intp)
    for cell in np.unique(visitors.cells).tolist():
        rows, places = np.flatnonzero(visitors.cells == cell), around.places(cell)
        queries = visitors.features[rows], [part[rows] for part in visitors.factors]
        features, factors = images.features[places], [part[places] for part in images.factors]
        n_found = min(n_candidates, len(places))
        if n_found:
            found = kernel_neighbors(features, factors, n_found, queries=queries)[0].indices
            chosen[rows, :n_found] = np.where(found >= 0, places[found], -1)
    # The own cell may be near a visited one.
    chosen[images.names[chosen] == visitors.nodes[:, None]] = -1
    return chosen


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


def _rank(
    task: _Task,
    images: _Images,
    chosen: NDArray[Any],
    others: Visitors,
    *,
    are_visitors: bool,
) -> tuple[list[tuple[NDArray[np.int32], NDArray[np.float32]]], NDArray[np.uint64]]:
    """Return the nearest candidates and their values under every prompt, and keys.

    `chosen` are the candidates of visitors, who are the `others`, or of own nodes. The latter are
    compared with the `others` too: the keys (n_prompts, n_others, q) are these nodes' exact
    neighbours among the own nodes.
    """
    present, n_own = chosen >= 0, 0 if are_visitors else len(chosen)
    # Only candidates are needed from here on.
    used = np.unique(np.concatenate([np.arange(n_own), chosen[present]]))
    places, names = np.searchsorted(used, chosen), images.names[used]
    kernel = _join(task, images, used, others)
    last = np.arange(len(used), len(kernel.features))
    counts = np.zeros(len(kernel.features), np.int64)
    counts[last if are_visitors else slice(n_own)] = present.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(kernel.features),) * 2
    pairs = csr_array((np.ones(int(indptr[-1]), np.int8), places[present], indptr), shape=shape)
    cosines = pair_products(pairs, kernel.features)
    judged = last[: 0 if are_visitors else len(last)]
    judged_cosines = kernel.features[judged] @ kernel.features[:n_own].T
    # A node is not its own neighbour.
    is_same = others.nodes[: len(judged), None] == names[None, :n_own]
    nearest, true = [], []
    for prompt in range(max(1, len(kernel.prompts))):
        values: Any = 0
        overlaps: Any = 1
        for packed, found in noun_parts(kernel, prompt, judged, task.most_bytes, 1, n_own):
            values += pair_products(pairs, packed) if packed else 1
            overlaps = found
        nearest.append(_largest(values * cosines, places, present, names, task.q))
        exact = judged_cosines * overlaps
        exact[is_same] = 0
        true.append(_true_keys(exact, names[:n_own], task.q))
    return nearest, np.stack(true)


def _join(task: _Task, images: _Images, used: NDArray[np.intp], others: Visitors) -> Kernel:
    """Return the kernel of some images with others after them."""
    features, semantic = _take_and_append(images.features, used, others.features), None
    if images.semantic is not None and others.semantic is not None:
        semantic = _take_and_append(images.semantic, used, others.semantic)
    return kernel_of(task.storage, task.how, features, semantic)


def _take_and_append(
    rows: NDArray[Any], used: NDArray[np.intp], more: NDArray[Any]
) -> NDArray[Any]:
    """Return some rows with others after them; rows are many, so they are copied only once."""
    found = np.empty((len(used) + len(more), rows.shape[1]), rows.dtype)
    # Without "clip" NumPy would buffer the output.
    np.take(rows, used, axis=0, out=found[: len(used)], mode="clip")
    found[len(used) :] = more
    return found


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
    """Return the q largest keys of every row."""
    found = np.zeros((len(exact), q), np.uint64)
    for own, values in zip(found, exact, strict=True):
        largest = np.argsort(-values, kind="stable")[:q]
        own[: len(largest)] = neighbor_keys(values[largest], names[largest])
    return found


def _edges(
    nodes: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    prompt: int,
) -> NDArray[Any]:
    """Return the neighbours that visitors found as edges."""
    rows, places = np.nonzero(indices >= 0)
    edges = np.empty(len(rows), EDGE)
    edges["source"], edges["target"] = nodes[rows], indices[rows, places]
    edges["value"], edges["prompt"] = values[rows, places], prompt
    return edges


def merge_checked(parts: list[NDArray[np.uint64]], q: int) -> NDArray[np.uint64]:
    """Return the q largest keys of the checked nodes over all groups of cells."""
    keys = np.concatenate(parts, axis=2).view(np.int64)
    return np.sort(keys, axis=2)[:, :, ::-1][:, :, :q].view(np.uint64)


def measure_recall(found: NDArray[np.int32], true: NDArray[np.uint64]) -> float:
    """Return the share of true neighbours that were found under the worst prompt."""
    flat = Nearest(true.reshape(-1, true.shape[2]), np.empty(0, np.float32)).sorted().indices
    shares = []
    for own, wanted in zip(found.reshape(-1, found.shape[2]), flat, strict=True):
        wanted = wanted[wanted >= 0]
        shares.append(np.isin(wanted, own).mean() if len(wanted) else 1.0)
    return float(np.min(np.mean(np.reshape(shares, found.shape[:2]), axis=1)))
