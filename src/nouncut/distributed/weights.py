"""Prompt weights (RAD) on row partitions, and the eigenvectors of the graph that is cut.

The losses of the prompts are sums over nodes (`nouncut.method.spectral_diffusion`): every partition
sums over its own nodes, and the client adds the partitions up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.chebyshev import chebyshev_series
from nouncut.compute.eigen import Eigenpairs, guard_vectors
from nouncut.compute.iteration import iterate_subspace
from nouncut.compute.sparse import with_entries
from nouncut.distributed.blocks import read_block
from nouncut.distributed.halo import (
    RowGraph,
    State,
    chebyshev_states,
    exchange,
    lowest_eigenvalue,
    read_rows,
    stack_rows,
    sum_files,
)
from nouncut.distributed.stages import Flow, Result, Task
from nouncut.distributed.storage import Storage
from nouncut.distributed.subspace import PartitionedSubspace
from nouncut.distributed.union import average_part, normalize_part
from nouncut.method.cut import RESIDUAL, rest_ceiling
from nouncut.method.spectral_diffusion import (
    N_PROBES,
    DifferenceSums,
    Diffusion,
    ProbeSums,
    Spectrum,
    SplitRows,
    difference_sums,
    probe_sums,
    random_probes,
)

STACK = "stack"


class PartitionedProblem:
    """The normalised graphs of all prompts; see `spectral_diffusion.WeighingProblem`.

    Parameters
    ----------
    graph : RowGraph
        The partitions; their edges under every prompt are in the folder `STACK`.
    gram : ndarray of shape (n_prompts, n_prompts)
        Inner products of the graphs' edges.
    n_pieces : int
        Number of eigenvectors.
    mu : float
        Weight of the identity in the diffusion.
    panel : int
        Columns that are multiplied at once.
    """

    def __init__(
        self, graph: RowGraph, gram: NDArray[Any], n_pieces: int, mu: float, panel: int, seed: int
    ) -> None:
        self._graph, self._gram, self._k, self._mu = graph, gram, n_pieces, mu
        self._panel, self._seed, self._round = panel, seed, -1
        self._weights = np.empty(0)
        self.values = np.empty(0)
        self.space: PartitionedSubspace | None = None

    def solve(self, weights: NDArray[np.float64]) -> None:
        """Find the leading eigenpairs of the mean graph, from those of the last one."""
        self._round, self._weights = self._round + 1, weights
        folder = f"mean-{self._round}"
        average(self._graph, weights, folder)
        self._mean = self._graph._replace(folder=folder)
        self.values, self.space = leading_vectors(
            self._mean, folder, self._k, self._panel, self._seed, (self.values, self.space)
        )

    def judge(self, n_steps: int | None) -> tuple[NDArray[np.float64], float]:
        """Return the loss of every prompt, and the distance of the affinity from the identity."""
        functions = Diffusion(self._mu, n_steps)
        name = f"weigh-{self._round}"
        self._graph.engine.progress("weighing prompts", 0, len(self._gram))
        vectors = self._columns()
        self._apply(name, functions, vectors)
        spectrum = Spectrum.of(self.values[: self._k], functions, self._graph.n_nodes)
        flow = Flow()
        tasks = self._loss_tasks(flow, name, vectors, spectrum)
        engine = self._graph.engine
        engine.run(f"{name}-losses", tasks, flow=flow)
        losses, distance = engine.once(
            f"{name}-sums", lambda: self._add_up(name, spectrum)
        ).values()
        engine.storage.remove(f"{name}/rows")
        engine.progress("weighing prompts", len(losses), len(losses))
        return np.array(losses), float(distance)

    def shift(self, change: NDArray[np.float64]) -> float:
        """Return the relative change of the mean graph for a change of the weights."""
        square, whole = (w @ self._gram @ w for w in (change, self._weights))
        return float(np.sqrt(max(square, 0.0) / whole))

    def _columns(self) -> dict[str, Any]:
        assert self.space is not None
        columns = self.space.columns[: self._k]
        return {"folder": self.space.block, "columns": columns, "transform": None}

    def _apply(self, name: str, functions: Diffusion, vectors: dict[str, Any]) -> None:
        """Apply the functions of the diffusion to probes outside of the leading vectors' span."""
        assert self.space is not None
        graph, engine = self._graph, self._graph.engine
        plain: dict[str, Any] = {"name": name, "vectors": vectors}
        engine.run_each(f"{name}-probes", graph.n_partitions, project_probes, plain)
        engine.once(f"{name}-shares", lambda: self._add_shares(name))
        pairs = Eigenpairs(self.values, np.empty(0))
        interval = self.space.lowest, rest_ceiling(pairs, self._k)
        rounding = float(np.finfo(np.float32).eps)
        series, interval = chebyshev_series((functions.smooth, functions.twice), interval, rounding)
        flow, mean = Flow(), self._mean.bundled()
        blocks = mean.load(flow, read_probes, **plain)
        states = chebyshev_states(flow, mean, blocks, interval, series)
        tasks = mean.tasks(save_probes, {"name": name}, blocks, states)
        engine.run(f"{name}-functions", tasks, flow=flow)

    def _add_shares(self, name: str) -> Result:
        storage = self._graph.engine.storage
        total = sum_files(storage, f"{name}/shares-{{p:05d}}.npy", self._graph.n_partitions)
        storage.write(f"{name}/shares.npy", total)
        return {}

    def _loss_tasks(
        self, flow: Flow, name: str, vectors: dict[str, Any], spectrum: Spectrum
    ) -> list[Task]:
        graph = self._graph
        rows = graph.load(flow, read_split, name=name, vectors=vectors)
        halos = exchange(flow, rows, graph.wanted(flow))
        plain = {
            "name": name,
            "mean": self._mean.folder,
            "weights": self._weights.tolist(),
            "smooth": spectrum.smooth.tolist(),
        }
        return [
            Task(f"{p:05d}", sum_losses, {"partition": p} | plain, (own, *halo))
            for p, (own, halo) in enumerate(zip(rows, halos, strict=True))
        ]

    def _add_up(self, name: str, spectrum: Spectrum) -> Result:
        storage = self._graph.engine.storage
        parts = [
            storage.read_several(f"{name}/sums-{p:05d}.npz")
            for p in range(self._graph.n_partitions)
        ]
        probes = ProbeSums(*np.sum([part["probes"] for part in parts], axis=0))
        traces = spectrum.traces(probes)
        total = {
            key: np.sum([part[key] for part in parts], axis=0) for key in DifferenceSums._fields
        }
        losses = [
            spectrum.loss(traces, DifferenceSums(**{key: total[key][b] for key in total}))
            for b in range(len(self._gram))
        ]
        return {"losses": losses, "distance": traces.distance}


def average(graph: RowGraph, weights: NDArray[np.float64], folder: str) -> None:
    """Write the mean of the graphs of all prompts."""
    plain = {"weights": weights.tolist(), "source": STACK, "target": folder}
    graph.engine.run_each(folder, graph.n_partitions, average_part, plain)


def normalize(graph: RowGraph, source: str, degrees: str, target: str) -> NDArray[np.float64]:
    """Normalise graphs by their degrees; return the inner products of their edges."""
    plain = {"source": source, "degrees": degrees, "target": target}
    stage = f"normalize-{target}"
    found = graph.engine.run_each(stage, graph.n_partitions, normalize_part, plain)
    return np.asarray(np.sum([one["gram"] for one in found], axis=0))


def leading_vectors(
    graph: RowGraph,
    name: str,
    k: int,
    panel: int,
    seed: int,
    start: tuple[NDArray[np.float64], PartitionedSubspace | None],
) -> tuple[NDArray[np.float64], PartitionedSubspace]:
    """Return the eigenvalues of k leading eigenvectors and some more, and the vectors."""
    values, before = start
    known = (before.block, before.columns) if before is not None else None
    space = PartitionedSubspace(
        graph,
        f"eigen/{name}",
        k + guard_vectors(k),
        lowest_eigenvalue(graph, name),
        panel,
        seed,
        known,
    )
    highest = float(values[-1]) if before is not None else None
    found = iterate_subspace(space, k, RESIDUAL, highest, graph.engine.progress)
    if before is not None:
        graph.engine.storage.remove(before.block)
    return found, space


def project_probes(storage: Storage, partition: int, name: str, vectors: dict[str, Any]) -> Result:
    """Write the products of the leading vectors with random probes."""
    own = read_block(storage, partition, {"columns": []}, vectors)
    probes = random_probes(storage.read(f"nodes/{partition:05d}/rows.npy"))
    storage.write(f"{name}/shares-{partition:05d}.npy", own.T.astype(np.float64) @ probes)
    return {}


def read_probes(
    storage: Storage, partition: int, name: str, vectors: dict[str, Any]
) -> NDArray[np.float32]:
    """Return random probes outside of the leading vectors' span."""
    own = read_block(storage, partition, {"columns": []}, vectors)
    shares = storage.read(f"{name}/shares.npy")
    probes = random_probes(storage.read(f"nodes/{partition:05d}/rows.npy")).astype(np.float32)
    return np.asarray(probes - own @ shares.astype(np.float32))


def save_probes(
    storage: Storage,
    probes: NDArray[Any],
    state: State,
    partition: int,
    rows: list[int],
    name: str,
) -> Result:
    """Write probes, and functions of the graph on them."""
    found = [part[slice(*rows)] for part in (probes, *state.totals)]
    storage.write(f"{name}/rows/{partition:05d}.npy", np.hstack(found))
    return {}


def read_split(
    storage: Storage, partition: int, name: str, vectors: dict[str, Any]
) -> NDArray[np.float32]:
    """Return leading vectors, probes, and functions on probes side by side."""
    own = read_block(storage, partition, {"columns": []}, vectors)
    return np.hstack([own, storage.read(f"{name}/rows/{partition:05d}.npy")])


def sum_losses(
    storage: Storage,
    own: NDArray[Any],
    *halo: NDArray[Any],
    partition: int,
    name: str,
    mean: str,
    weights: list[float],
    smooth: list[float],
) -> Result:
    """Write the sums over the nodes of a partition that the losses of all prompts consist of."""
    rows, around = (_split(block) for block in (own, stack_rows(own, *halo)))
    graph = read_rows(storage, mean, partition)
    edges = storage.read_several(f"{STACK}/{partition:05d}.npz")["edges"]
    mean_edges = np.asarray(weights) @ edges
    found = [
        difference_sums(with_entries(graph, own_edges - mean_edges), rows, around, np.array(smooth))
        for own_edges in edges
    ]
    storage.write_several(
        f"{name}/sums-{partition:05d}.npz",
        probes=np.array(probe_sums(graph, rows, around)),
        **{key: np.stack([getattr(one, key) for one in found]) for key in DifferenceSums._fields},
    )
    return {}


def _split(block: NDArray[Any]) -> SplitRows:
    k = block.shape[1] - 3 * N_PROBES
    ends = [k, k + N_PROBES, k + 2 * N_PROBES]
    return SplitRows(*(np.ascontiguousarray(part) for part in np.split(block, ends, axis=1)))
