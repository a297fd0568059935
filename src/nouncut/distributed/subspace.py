"""Leading eigenvectors of a partitioned graph; every step leaves its block in files.

The iteration is that of one machine, `nouncut.compute.iteration`. Filters are applied to a few
columns at a time, so that what the workers hold at once stays within their memory. Whatever has to
be summed over all nodes is summed by the client, in the order of partitions, from small matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.iteration import PROBES, Report, definite_eigh
from nouncut.distributed.blocks import (
    compose_block,
    read_block,
    rotate_block,
    save_filtered,
    save_image,
    sum_products,
)
from nouncut.distributed.halo import RowGraph, chebyshev_states, products
from nouncut.distributed.stages import Flow, Result

# A panel's columns are multiples of this, as SciPy multiplies four at once.
_LANES = 4
# Share of a round that its filter takes.
_FILTERED = 0.8


class PartitionedSubspace:
    """A block of vectors with a row for every node; see `nouncut.compute.iteration.Subspace`.

    Parameters
    ----------
    graph : RowGraph
        A normalised graph.
    name : str
        Folder of all files, unique in a run.
    width : int
        Number of vectors.
    lowest : float
        No eigenvalue is below it.
    panel : int
        Columns that are filtered at once.
    start : str, optional
        Folder of a block to start from; random vectors fill it up.
    """

    kind = np.float32
    degrees = (3, 20)

    def __init__(
        self,
        graph: RowGraph,
        name: str,
        width: int,
        lowest: float,
        panel: int,
        seed: int,
        start: tuple[str, list[int]] | None = None,
    ) -> None:
        self._graph, self._name, self.width, self.lowest = graph, name, width, lowest
        self._panel = max(_LANES, panel // _LANES * _LANES)
        self._seed, self._step = seed, 0
        self._n_searches = 0
        source, columns = start or ("", [])
        self.block = self._rewrite("start", source, columns, width - len(columns))
        self.columns = list(range(width))
        self._probes = ""

    def advance(
        self, first: int, degree: int, low: float, high: float, k: int, report: Report
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Filter the columns from `first` on, and replace them by Ritz vectors."""
        self._step += 1
        name = f"{self._name}/{self._step:03d}"
        done = {"folder": self.block, "columns": self.columns[:first]}
        rest = {"folder": self.block, "columns": self.columns[first:], "transform": None}
        filtered = self._filter(name, done, rest, degree, (low, high), report)
        report(_FILTERED)
        values, residuals = self._ritz(name, done, filtered, k)
        self._forget(self.block)
        self.block, self.columns = f"{name}/block", list(range(self.width))
        return values, residuals

    def sort(self, order: NDArray[np.intp]) -> None:
        """Permute the columns; files change at the next step."""
        self.columns = [self.columns[i] for i in order]

    def draw_probes(self) -> None:
        """Draw random vectors beside the block."""
        self._n_searches += 1
        self._probes = self._rewrite(f"probes-{self._n_searches}", "", [], PROBES)

    def advance_probes(self, degree: int, low: float, high: float) -> float:
        """Filter the probes outside of the block's span; return their largest Ritz value."""
        self._step += 1
        name = f"{self._name}/{self._step:03d}"
        known = {"folder": self.block, "columns": self.columns}
        probes = {"folder": self._probes, "columns": list(range(PROBES)), "transform": None}
        probes["transform"] = self._remove(f"{name}/before", known, probes)
        filtered = self._filter(name, known, probes, degree, (low, high))
        # Twice, because filters amplify the block's remainder that rounding leaves.
        filtered["transform"] = self._remove(f"{name}/again", known, filtered)
        values, _ = self._ritz(name, known | {"columns": []}, filtered, 1, known)
        self._forget(self._probes)
        self._probes = f"{name}/block"
        return float(values[0])

    def adopt_probes(self) -> None:
        """Replace the last columns by the probes."""
        kept = self.columns[:-PROBES]
        before = self.block
        self.block = self._rewrite(f"adopted-{self._n_searches}", before, kept, 0, self._probes)
        self.columns = list(range(self.width))
        self._forget(before)

    def _run(self, stage: str, function: Any, arguments: dict[str, Any]) -> list[Result]:
        return self._graph.engine.run_each(stage, self._graph.n_partitions, function, arguments)

    def _rewrite(
        self, name: str, source: str, columns: list[int], n_random: int, more: str = ""
    ) -> str:
        """Write a block of some columns of another, of random ones, and of all of a third."""
        target = f"{self._name}/{name}"
        starts = self._graph.starts
        arguments = {"source": source, "columns": columns, "n_random": n_random, "more": more}
        arguments |= {"target": target, "seed": self._seed, "starts": starts}
        self._run(target.replace("/", "-"), compose_block, arguments)
        return target

    def _panels(self, n_columns: int) -> list[tuple[int, int]]:
        firsts = range(0, n_columns, self._panel)
        return [(a, min(a + self._panel, n_columns)) for a in firsts]

    def _filter(
        self,
        name: str,
        done: dict[str, Any],
        rest: dict[str, Any],
        degree: int,
        interval: tuple[float, float],
        report: Report | None = None,
    ) -> dict[str, Any]:
        """Filter columns; return where they are, with what makes them orthogonal to `done`."""
        graph, no_series = self._graph.bundled(), np.zeros((0, degree + 1))
        panels = self._panels(len(rest["columns"]))
        for number, (a, b) in enumerate(panels):
            if report:
                report(_FILTERED * number / len(panels))
            flow = Flow()
            blocks = graph.load(flow, read_block, done=done, rest=rest, a=a, b=b)
            states = chebyshev_states(flow, graph, blocks, interval, no_series)
            tasks = graph.tasks(save_filtered, {"name": name, "first": a, "done": done}, states)
            graph.engine.run(f"{name}-filter-{a}".replace("/", "-"), tasks, flow=flow)
        squares, shares = self._add_up(f"{name}/sums", f"{name}/filtered", panels)
        return {
            "folder": f"{name}/filtered",
            "columns": list(range(len(rest["columns"]))),
            "panels": panels,
            "transform": self._keep_transform(f"{name}/removed", squares, shares),
        }

    def _remove(self, name: str, done: dict[str, Any], rest: dict[str, Any]) -> str:
        """Return the file with what makes columns orthogonal to `done`."""
        self._run(
            name.replace("/", "-"), sum_products, {"done": done, "rest": rest, "target": name}
        )
        n = len(rest["columns"])
        squares, shares = self._add_up(f"{name}/sums", name, [(0, n)])
        return self._keep_transform(f"{name}/removed", squares, shares, rest["transform"])

    def _add_up(
        self, kept: str, folder: str, panels: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sum the squares of columns and their products with `done` over all partitions."""
        storage = self._graph.engine.storage
        if storage.size(f"{kept}.npz") is None:
            found: list[list[NDArray[np.float64]]] = [[], []]
            for a, _ in panels:
                for name, parts in zip(("squares", "shares"), found, strict=True):
                    parts.append(self._sum(f"{folder}/sums-{{p:05d}}-{a}.npz", name))
            squares, shares = (np.concatenate(parts, axis=-1) for parts in found)
            storage.write_several(f"{kept}.npz", squares=squares, shares=shares)
        read = storage.read_several(f"{kept}.npz")
        return read["squares"], read["shares"]

    def _sum(self, pattern: str, name: str) -> NDArray[np.float64]:
        storage = self._graph.engine.storage
        total: Any = 0
        for p in range(self._graph.n_partitions):
            total = total + storage.read_several(pattern.format(p=p))[name]
        return np.asarray(total)

    def _keep_transform(
        self,
        name: str,
        squares: NDArray[np.float64],
        shares: NDArray[np.float64],
        earlier: str | None = None,
    ) -> str:
        """Write scales and shares: orthogonal columns are ``rest * scale - done @ shares``."""
        storage = self._graph.engine.storage
        scale = 1 / np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
        shares = shares * scale
        if earlier is not None:
            first = storage.read_several(f"{earlier}.npz")
            shares = first["shares"] * scale + shares
            scale = first["scale"] * scale
        storage.write_several(f"{name}.npz", scale=scale, shares=shares)
        return name

    def _ritz(
        self,
        name: str,
        done: dict[str, Any],
        rest: dict[str, Any],
        k: int,
        known: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Replace columns by Ritz vectors; `done` columns are written before them."""
        graph, storage = self._graph.bundled(), self._graph.engine.storage
        known = known or done
        panels = self._panels(len(rest["columns"]))
        for a, b in panels:
            flow = Flow()
            blocks = graph.load(flow, read_block, done=known, rest=rest, a=a, b=b)
            images = products(flow, graph, blocks)
            plain = {"name": name, "first": a, "last": b, "done": known, "rest": rest}
            tasks = graph.tasks(save_image, plain, images)
            graph.engine.run(f"{name}-image-{a}".replace("/", "-"), tasks, flow=flow)
        if storage.size(f"{name}/rotation.npz") is None:
            overlap, inner = (
                np.concatenate(
                    [self._sum(f"{name}/image/sums-{{p:05d}}-{a}.npz", part) for a, _ in panels],
                    axis=1,
                )
                for part in ("overlap", "inner")
            )
            rounding = float(np.finfo(self.kind).eps) / 10
            values, rotation = definite_eigh(
                (inner + inner.T) / 2, (overlap + overlap.T) / 2, rounding
            )
            storage.write_several(f"{name}/rotation.npz", values=values, rotation=rotation)
        values = storage.read_several(f"{name}/rotation.npz")["values"]
        arguments = {
            "name": name,
            "done": done,
            "known": known,
            "rest": rest,
            "k": k,
            "panels": panels,
        }
        found = self._run(f"{name}-rotate".replace("/", "-"), rotate_block, arguments)
        squares = np.sum([result["squares"] for result in found], axis=0)
        for folder in ("filtered", "image"):
            self._forget(f"{name}/{folder}")
        return values, np.sqrt(squares)

    def _forget(self, folder: str) -> None:
        self._graph.engine.storage.remove(folder)
