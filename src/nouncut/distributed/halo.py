"""Products of a partitioned graph with blocks of vectors: partitions exchange only their halos.

Blocks live in the memory of the workers while a stage runs. Dask decides which step runs where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    """A graph as row partitions in files."""

    engine: Engine
    folder: str
    starts: list[int]  # (n_partitions + 1,), the first node of every partition
    offsets: list[list[int]]  # Where the nodes of every other partition begin in a halo.

    @property
    def n_partitions(self) -> int:
        """The number of partitions."""
        return len(self.starts) - 1

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.starts[-1]

    def load(self, flow: Flow, function: Callable[..., Any], **plain: Any) -> Step:
        """Add a step that reads files."""
        storage = self.engine.storage
        return flow.add(partial_of(function, storage.url, storage.options), **plain)

    def parts(self, flow: Flow) -> list[Step]:
        """Return the rows of every partition as a sparse matrix."""
        return [
            self.load(flow, read_rows, folder=self.folder, partition=p)
            for p in range(self.n_partitions)
        ]

    def wanted(self, flow: Flow) -> list[list[tuple[int, Step]]]:
        """Return for every partition the partitions around it, and their nodes that it needs."""
        return [
            [
                (other, self.load(flow, _read_wanted, partition=p, a=a, b=b, start=start))
                for other, (a, b, start) in enumerate(
                    zip(offsets[:-1], offsets[1:], self.starts, strict=False)
                )
                if b > a
            ]
            for p, offsets in enumerate(self.offsets)
        ]


def partial_of(function: Callable[..., Any], url: str, options: Options) -> Callable[..., Any]:
    """Return a function of plain arguments that opens the storage itself."""
    loaded = partial(_load, function, url, options)
    loaded.__name__ = function.__name__  # type: ignore[attr-defined]
    return loaded


def exchange(
    flow: Flow,
    blocks: Sequence[Step],
    wanted: Sequence[Sequence[tuple[int, Step]]],
    pick: Callable[..., Any] | None = None,
) -> list[list[Step]]:
    """Return the halo of every partition in pieces, one from each partition around it."""
    take = pick or take_rows
    return [[flow.add(take, blocks[other], rows) for other, rows in around] for around in wanted]


def chebyshev_states(
    flow: Flow,
    graph: RowGraph,
    blocks: Sequence[Step],
    interval: tuple[float, float],
    coefficients: NDArray[Any],
) -> list[Step]:
    """Apply Chebyshev series of a graph to blocks; return the last state of every partition.

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
    """Return the product of a partition's rows with a block and its halo."""
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
    # With 64-bit row pointers SciPy would widen the indices too.
    indptr = rows["indptr"].astype(np.int32) if rows["indptr"][-1] < 2**31 else rows["indptr"]
    return csr_array((rows["edges"][0], rows["indices"], indptr), shape=(n_nodes, n_nodes + n_halo))


def _take_now(state: State, rows: NDArray[np.int64]) -> NDArray[Any]:
    return state.now[rows]


def _read_wanted(storage: Storage, partition: int, a: int, b: int, start: int) -> NDArray[np.int64]:
    return np.asarray(storage.read(f"halo/{partition:05d}.npy", a, b)) - start


def _load(function: Callable[..., Any], url: str, options: Options, **plain: Any) -> Any:
    return function(Storage(url, options), **plain)


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
    flow, coefficients = Flow(), np.zeros((0, _FILTER_DEGREE + 1))
    ends = zip(graph.starts[:-1], graph.starts[1:], strict=True)
    blocks = [flow.add(_start_block, start=a, stop=b) for a, b in ends]
    states = chebyshev_states(flow, graph, blocks, (_LOW_END, 1.0), coefficients)
    filtered = [flow.add(_now, state) for state in states]
    images = products(flow, graph, filtered)
    tasks = [
        Task(f"{p:05d}", _quotients, {}, pair)
        for p, pair in enumerate(zip(filtered, images, strict=True))
    ]
    found = graph.engine.run(f"{name}-lowest", tasks, flow=flow)
    inner, squares = (np.sum([one[key] for one in found], axis=0) for key in ("inner", "squares"))
    lowest = float(np.min(inner / np.maximum(squares, np.finfo(np.float64).tiny)))
    return max(-1.0, min(lowest, _LOW_END) - _MARGIN)


def _start_block(start: int, stop: int) -> NDArray[np.float64]:
    nodes = np.arange(start, stop, dtype=np.float64)[:, None]
    return np.cos(nodes * np.arange(1, 5))


def _now(state: State) -> NDArray[Any]:
    return state.now


def _quotients(storage: Storage, block: NDArray[Any], image: NDArray[Any]) -> Result:
    inner, squares = (np.einsum("ij,ij->j", block, one) for one in (image, block))
    return {"inner": inner.tolist(), "squares": squares.tolist()}
