"""Products of a partitioned graph with blocks of vectors: workers exchange only halos.

Blocks live in the memory of the workers while a stage runs. Many products in a row are taken of
bundles: consecutive partitions that one worker holds and multiplies at once, so that Dask has few
steps to hand out, and what partitions of one worker need of each other is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from nouncut.compute.sparse import sparse_product
from nouncut.distributed.stages import Engine, Flow, Result, Step, Task
from nouncut.distributed.storage import Options, Storage

# Eigenvalues below this are looked for, and found to about the margin.
_LOW_END, _FILTER_DEGREE, _MARGIN = -0.2, 20, 0.05


class RowGraph(NamedTuple):
    """A graph as row partitions in files, and the bundles of them that are multiplied at once."""

    engine: Engine
    folder: str
    starts: list[int]  # (n_partitions + 1,), the first node of every partition
    offsets: list[list[int]]  # Where the nodes of every other partition begin in a halo.
    n_bundles: int | None = None  # By default every partition is a bundle.

    @property
    def n_partitions(self) -> int:
        """The number of partitions."""
        return len(self.starts) - 1

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.starts[-1]

    @property
    def bundles(self) -> list[range]:
        """The partitions of every bundle."""
        n = self.n_bundles or self.n_partitions
        ends = [number * self.n_partitions // n for number in range(n + 1)]
        return [range(a, b) for a, b in pairwise(ends)]

    @property
    def n_halo(self) -> int:
        """The most nodes that the halos of all bundles have together."""
        return sum(self._halo_of(own) for own in self.bundles)

    def bundled(self) -> RowGraph:
        """Return the graph with one bundle for every thread of the workers."""
        return self._replace(n_bundles=min(self.n_partitions, self.engine.n_threads))

    def load(self, flow: Flow, function: Callable[..., Any], **plain: Any) -> list[Step]:
        """Add a step for every bundle that reads its partitions with a function."""
        return [
            self._step(flow, _read_rows_of, home, partitions=list(bundle), read=function, **plain)
            for home, bundle in enumerate(self.bundles)
        ]

    def parts(self, flow: Flow) -> list[Step]:
        """Return the rows of every bundle as a sparse matrix."""
        return [
            self._step(flow, read_bundle, home, self.folder, list(bundle), self._bounds(bundle))
            for home, bundle in enumerate(self.bundles)
        ]

    def wanted(self, flow: Flow) -> list[list[tuple[int, Step]]]:
        """Return for every bundle the bundles around it, and their nodes that it needs."""
        return [
            [
                (home, self._step(flow, _read_wanted, home, slices, self.starts[other.start]))
                for home, other in enumerate(self.bundles)
                if (slices := self._slices(own, other))
            ]
            for own in self.bundles
        ]

    def tasks(
        self, function: Callable[..., Result], arguments: dict[str, Any], *inputs: Sequence[Step]
    ) -> list[Task]:
        """Return a task for every partition; its inputs are those of its bundle, and its `rows`."""
        found = []
        for bundle, *steps in zip(self.bundles, *inputs, strict=True):
            first = self.starts[bundle.start]
            for p in bundle:
                rows = [self.starts[p] - first, self.starts[p + 1] - first]
                own = {"partition": p, "rows": rows, **arguments}
                found.append(Task(f"{p:05d}", function, own, tuple(steps)))
        return found

    def _slices(self, own: range, other: range) -> list[tuple[int, int, int]]:
        """Return where the halos of a bundle's partitions lead to another bundle."""
        if own == other:
            return []
        ends = [(p, self.offsets[p][other.start], self.offsets[p][other.stop]) for p in own]
        return [(p, a, b) for p, a, b in ends if b > a]

    def _halo_of(self, own: range) -> int:
        around = [slices for other in self.bundles for slices in self._slices(own, other)]
        start, stop = self._bounds(own)
        # Partitions of a bundle may need the same nodes.
        return min(sum(b - a for _, a, b in around), self.n_nodes - (stop - start))

    def _bounds(self, bundle: range) -> tuple[int, int]:
        return self.starts[bundle.start], self.starts[bundle.stop]

    def _step(
        self, flow: Flow, function: Callable[..., Any], home: int, *values: Any, **plain: Any
    ) -> Step:
        """Add a step that reads files."""
        storage = self.engine.storage
        loaded = partial(_load, function, storage.url, storage.options, values)
        loaded.__name__ = function.__name__  # type: ignore[attr-defined]
        return flow.add(loaded, home=home, **plain)


def exchange(
    flow: Flow,
    blocks: Sequence[Step],
    wanted: Sequence[Sequence[tuple[int, Step]]],
    pick: Callable[..., Any] | None = None,
) -> list[list[Step]]:
    """Return the halo of every bundle in pieces, one from each bundle around it."""
    take = pick or take_rows
    return [[flow.add(take, blocks[other], rows) for other, rows in around] for around in wanted]


def chebyshev_states(
    flow: Flow,
    graph: RowGraph,
    blocks: Sequence[Step],
    interval: tuple[float, float],
    coefficients: NDArray[Any],
) -> list[Step]:
    """Apply Chebyshev series of a graph to blocks; return the last state of every bundle.

    `coefficients` are (n_series, degree + 1); without series the state has the last polynomial.
    """
    parts, wanted = graph.parts(flow), graph.wanted(flow)
    low, high = interval
    scale = {"centre": (low + high) / 2, "radius": (high - low) / 2}
    first = coefficients[:, 0].tolist()
    states = [flow.add(_first_state, block, coefficients=first) for block in blocks]
    for order in range(1, coefficients.shape[1]):
        halos = exchange(flow, states, wanted, _take_now)
        plain = scale | {"order": order, "coefficients": coefficients[:, order].tolist()}
        states = [
            flow.add(_next_state, part, state, *halo, **plain)
            for part, state, halo in zip(parts, states, halos, strict=True)
        ]
    return states


def products(flow: Flow, graph: RowGraph, blocks: Sequence[Step]) -> list[Step]:
    """Return the products of a graph with blocks."""
    halos = exchange(flow, blocks, graph.wanted(flow))
    return [
        flow.add(multiply_rows, part, block, *halo)
        for part, block, halo in zip(graph.parts(flow), blocks, halos, strict=True)
    ]


class State(NamedTuple):
    """Two consecutive Chebyshev polynomials of a graph times a block, and sums of them."""

    before: NDArray[Any] | None
    now: NDArray[Any]
    totals: tuple[NDArray[Any], ...]


def _first_state(block: NDArray[Any], coefficients: list[float]) -> State:
    return State(None, block, tuple(block.dtype.type(c) * block for c in coefficients))


def _next_state(
    part: csr_array,
    state: State,
    *halo: NDArray[Any],
    order: int,
    centre: float,
    radius: float,
    coefficients: list[float],
) -> State:
    kind = state.now.dtype.type
    product = multiply_rows(part, state.now, *halo)
    product -= kind(centre) * state.now
    product *= kind((1 if order == 1 else 2) / radius)
    if state.before is not None:
        product -= state.before
    totals = tuple(
        total + kind(c) * product if c else total
        for total, c in zip(state.totals, coefficients, strict=True)
    )
    return State(state.now, product, totals)


def multiply_rows(part: csr_array, own: NDArray[Any], *halo: NDArray[Any]) -> NDArray[Any]:
    """Return the product of a bundle's rows with a block and its halo."""
    block = np.concatenate([own, *halo]) if halo else own
    return sparse_product(part.astype(block.dtype, copy=False), block)


def take_rows(block: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a block, or of a sparse matrix."""
    return block[rows]


def stack_rows(own: Any, *halo: Any) -> Any:
    """Return a block with its halo below."""
    if isinstance(own, csr_array):
        return csr_array(vstack([own, *halo])) if halo else own
    return np.concatenate([own, *halo]) if halo else own


def read_rows(storage: Storage, folder: str, partition: int) -> csr_array:
    """Return the rows of a partition; columns are its nodes and its halo."""
    rows = storage.read_several(f"{folder}/{partition:05d}.npz")
    n_halo = storage.read(f"halo/{partition:05d}.npy").shape[0]
    n_nodes = len(rows["indptr"]) - 1
    indptr = _narrow(rows["indptr"])
    return csr_array((rows["edges"][0], rows["indices"], indptr), shape=(n_nodes, n_nodes + n_halo))


def _narrow(indptr: NDArray[np.int64]) -> NDArray[Any]:
    """Return row pointers of 32 bits if they suffice; SciPy would widen the indices too."""
    return indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr


def read_bundle(
    storage: Storage, folder: str, partitions: list[int], bounds: tuple[int, int]
) -> csr_array:
    """Return the rows of consecutive partitions; columns are their nodes, then their halo."""
    start, stop = bounds
    halos = [np.asarray(storage.read(f"halo/{p:05d}.npy")) for p in partitions]
    around = np.unique(np.concatenate([halo[(halo < start) | (halo >= stop)] for halo in halos]))
    counts, indices, edges, first = [np.zeros(1, np.int64)], [], [], 0
    for partition, halo in zip(partitions, halos, strict=True):
        rows = read_rows(storage, folder, partition)
        is_own = (halo >= start) & (halo < stop)
        far = np.where(is_own, halo - start, stop - start + np.searchsorted(around, halo))
        places = np.concatenate([np.arange(first, first + rows.shape[0]), far]).astype(np.int32)
        counts.append(np.diff(rows.indptr))
        indices.append(places[rows.indices])
        edges.append(rows.data)
        first += rows.shape[0]
    del rows
    indptr = _narrow(np.cumsum(np.concatenate(counts)))
    # One after the other, as they are large.
    entries, edges = np.concatenate(edges), []
    return csr_array((entries, np.concatenate(indices), indptr), shape=(first, first + len(around)))


def _take_now(state: State, rows: NDArray[np.int64]) -> NDArray[Any]:
    return state.now[rows]


def _read_rows_of(
    storage: Storage, partitions: list[int], read: Callable[..., NDArray[Any]], **plain: Any
) -> NDArray[Any]:
    """Read the rows of partitions one after the other."""
    parts = [read(storage, partition=p, **plain) for p in partitions]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _read_wanted(
    storage: Storage, slices: list[tuple[int, int, int]], start: int
) -> NDArray[np.int64]:
    """Return the nodes in parts of the halos of several partitions, counted from `start`."""
    parts = [np.asarray(storage.read(f"halo/{p:05d}.npy", a, b)) for p, a, b in slices]
    return np.unique(np.concatenate(parts)) - start


def _load(
    function: Callable[..., Any], url: str, options: Options, values: Sequence[Any], **plain: Any
) -> Any:
    return function(Storage(url, options), *values, **plain)


def sum_files(storage: Storage, pattern: str, n_partitions: int) -> NDArray[np.float64]:
    """Add up one array of every partition."""
    total: Any = 0
    for p in range(n_partitions):
        total = total + storage.read(pattern.format(p=p))
    return np.asarray(total)


def lowest_eigenvalue(graph: RowGraph, name: str) -> float:
    """Return a lower bound of the eigenvalues of a normalised graph.

    A filter amplifies what is below an interval. The Rayleigh quotient of the result is near the
    lowest eigenvalue, or within the interval if there is nothing below it.
    """
    graph = graph.bundled()
    flow, coefficients = Flow(), np.zeros((0, _FILTER_DEGREE + 1))
    blocks = graph.load(flow, _start_block, starts=graph.starts)
    states = chebyshev_states(flow, graph, blocks, (_LOW_END, 1.0), coefficients)
    filtered = [flow.add(_now, state) for state in states]
    images = products(flow, graph, filtered)
    tasks = graph.tasks(_quotients, {}, filtered, images)
    found = graph.engine.run(f"{name}-lowest", tasks, flow=flow)
    inner, squares = (np.sum([one[key] for one in found], axis=0) for key in ("inner", "squares"))
    lowest = float(np.min(inner / np.maximum(squares, np.finfo(np.float64).tiny)))
    return max(-1.0, min(lowest, _LOW_END) - _MARGIN)


def _start_block(storage: Storage, partition: int, starts: list[int]) -> NDArray[np.float32]:
    nodes = np.arange(starts[partition], starts[partition + 1], dtype=np.float64)[:, None]
    return np.cos(nodes * np.arange(1, 5)).astype(np.float32)


def _now(state: State) -> NDArray[Any]:
    return state.now


def _quotients(
    storage: Storage, block: NDArray[Any], image: NDArray[Any], partition: int, rows: list[int]
) -> Result:
    own = block[slice(*rows)]
    inner, squares = (
        np.einsum("ij,ij->j", own, one, dtype=np.float64) for one in (image[slice(*rows)], own)
    )
    return {"inner": inner.tolist(), "squares": squares.tolist()}
