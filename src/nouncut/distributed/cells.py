"""From shards to partitions: similar images are put into the same cell, and near cells together.

Images get new numbers, the numbers of nodes, in the order of cells. Each partition is a range of
cells, so most neighbours of its nodes are in the same partition. Copies of an image fall into the
same cell, and are one node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import Projection, spaced_rows, unit_rows
from nouncut.distributed.near import MISSED, CellMeans, mean_rows, near_cells, near_needed
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.method.candidates import (
    assign_cells,
    cell_centers,
    describe_rows,
    noun_directions,
    project_nouns,
)
from nouncut.method.copies import find_originals
from nouncut.method.kernel import Kernel
from nouncut.method.search import Candidates, candidates_needed, mean_prompt, true_neighbors

# Principal axes of cells need few digits.
_POWER_STEPS = 8
_CELLS_TOGETHER = 4
# Sampled images whose neighbours tell how many cells are near, and images on which the recall is
# measured: its standard error is then about a quarter of a percent.
CHECKED_IMAGES = 256
# Sampled images among which candidates are compared with the neighbours of every prompt.
_JUDGED = 32_768


class Coupling(NamedTuple):
    """How visual features and nouns are coupled; plain, because tasks get it as an argument."""

    tau: float = 1.0
    weight: float = 1.0
    has_nouns: bool = False
    has_semantic: bool = False  # Images have features of their own in the space of the nouns.
    has_view: bool = False  # Visual features are projected before they are compared.
    by_words: bool = False  # Images are compared by their projected semantic features.

    @property
    def differs(self) -> bool:
        """Whether nodes have semantic rows beside the rows by which they are compared."""
        return self.has_nouns and (self.has_semantic or self.has_view)


class ShardRows(NamedTuple):
    """Images of a shard: as encoded, for texts, and as they are compared; not of length one."""

    raw: NDArray[Any]
    meaning: NDArray[Any]
    features: NDArray[np.float32]

    @classmethod
    def read(
        cls, storage: Storage, shard: int, how: Coupling, rows: NDArray[np.int64] | None = None
    ) -> ShardRows:
        """Read all images of a shard, or some."""
        some: Any = slice(None) if rows is None else rows
        raw = storage.read(f"features/{shard:05d}.npy")[some]
        meaning = storage.read(f"semantic/{shard:05d}.npy")[some] if how.has_semantic else raw
        return cls(raw, meaning, compared_rows(storage, raw, meaning, how))

    def units(self, how: Coupling) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return unit rows by which images are compared with each other, and with nouns."""
        features = unit_rows(self.features)
        if not how.differs:
            return features, features
        return features, unit_rows(np.asarray(self.meaning, np.float32))


def sample_shard(
    storage: Storage, shard: int, start: int, n_images: int, size: int, has_semantic: bool
) -> Result:
    """Take evenly spaced images of all shards from one of them."""
    features = storage.read(f"features/{shard:05d}.npy")
    own = spaced_rows(n_images, size, start, start + len(features))
    arrays = {"features": features[own]}
    if has_semantic:
        arrays["semantic"] = storage.read(f"semantic/{shard:05d}.npy")[own]
    storage.write_several(f"sample/{shard:05d}.npz", **arrays)
    return {"n_sampled": len(own)}


def read_sample(storage: Storage, n_shards: int) -> dict[str, NDArray[Any]]:
    """Return the sampled features, and the semantic ones if there are any."""
    parts = [storage.read_several(f"sample/{shard:05d}.npz") for shard in range(n_shards)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def compared_rows(
    storage: Storage, features: NDArray[Any], semantic: NDArray[Any], how: Coupling
) -> NDArray[np.float32]:
    """Return rows by which images are compared; not yet of length one."""
    if how.by_words:
        features = unit_rows(np.asarray(semantic, np.float32))
    if how.has_view:
        return Projection(**storage.read_several("choices/view.npz"))(features)
    return np.asarray(features, np.float32)


def choose_cells(
    storage: Storage,
    n_shards: int,
    n_images: int,
    n_cells: int,
    most_near: int,
    q: int,
    coupling: dict[str, Any],
) -> Result:
    """Find cells in the sample, in an order that keeps near cells together.

    Returns how many candidates, and how many near cells, hold the q nearest images of an image.
    """
    how = Coupling(**coupling)
    features, semantic = _unit_sample(storage, n_shards, how)
    kernel, factors, needed = Kernel(features, features), [], Candidates(q, 0)
    if how.has_nouns:
        prompts = list(storage.read("choices/nouns.npy"))
        nouns = mean_prompt(prompts)
        directions = noun_directions(semantic, nouns, how.tau, weight=how.weight)
        storage.write("cells/directions.npy", directions)
        factors = [project_nouns(semantic, nouns, how.tau, directions, 1, how.weight)]
        kernel = Kernel(features, semantic, prompts, how.tau, how.weight)
        some = np.linspace(0, len(features) - 1, min(len(features), _JUDGED)).astype(np.intp)
        needed = candidates_needed(
            kernel.take(some),
            factors[0][some],
            q,
            CHECKED_IMAGES,
            found=1 - MISSED / 2,
            share=len(some) / n_images,
        )
    checked, neighbors = true_neighbors(kernel, needed.hardest, q, CHECKED_IMAGES)

    def describe(rows: Any) -> NDArray[np.float32]:
        return describe_rows(features[rows], [part[rows] for part in factors])

    centers = cell_centers(describe, len(features), n_cells, 1)
    centers = np.ascontiguousarray(centers[bisection_order(centers)])
    cells = assign_cells(describe, len(features), centers, 1)
    means = CellMeans(*(mean_rows(part, cells, len(centers)) for part in (features, *factors)))
    means.write(storage)
    n_near = min(most_near, near_needed(means, (checked, neighbors), cells, features, *factors))
    storage.write("cells/centers.npy", centers)
    storage.write("cells/near-0.npy", near_cells(means, n_near))
    return {"places": needed.number, "near": n_near}


def _unit_sample(
    storage: Storage, n_shards: int, how: Coupling
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the sampled rows by which images are compared, and those of their meaning."""
    sample = read_sample(storage, n_shards)
    raw, meaning = sample["features"], sample["semantic" if how.has_semantic else "features"]
    return ShardRows(raw, meaning, compared_rows(storage, raw, meaning, how)).units(how)


def widen_near(storage: Storage, n_near: int, attempt: int) -> Result:
    """Find more near cells of every cell."""
    storage.write(f"cells/near-{attempt}.npy", near_cells(CellMeans.read(storage), n_near))
    return {}


def bisection_order(points: NDArray[Any]) -> NDArray[np.intp]:
    """Order points by halving them again and again along their principal axes."""
    parts, ordered = [np.arange(len(points))], []
    while parts:
        part = parts.pop()
        if len(part) <= _CELLS_TOGETHER:
            ordered.append(part)
            continue
        rows = points[part] - points[part].mean(axis=0)
        axis = np.cos(np.arange(rows.shape[1]))
        for _ in range(_POWER_STEPS):
            axis = rows.T @ (rows @ axis)
            axis /= max(np.linalg.norm(axis), np.finfo(np.float64).tiny)
        along = part[np.argsort(rows @ axis, kind="stable")]
        half = len(along) // 2
        parts += [along[half:], along[:half]]
    return np.concatenate(ordered)


def sort_shard(storage: Storage, shard: int, start: int, coupling: dict[str, Any]) -> Result:
    """Put every image of a shard into a cell, and write the images in the order of cells."""
    how = Coupling(**coupling)
    features, semantic = ShardRows.read(storage, shard, how).units(how)
    factors: list[NDArray[np.float32]] = []
    if how.has_nouns:
        nouns = mean_prompt(list(storage.read("choices/nouns.npy")))
        directions = storage.read("cells/directions.npy")
        factors = [project_nouns(semantic, nouns, how.tau, directions, 1, how.weight)]
    centers = storage.read("cells/centers.npy")

    def describe(rows: Any) -> NDArray[np.float32]:
        return describe_rows(features[rows], [part[rows] for part in factors])

    cells = assign_cells(describe, len(features), centers, 1)
    order = np.argsort(cells, kind="stable")
    storage.write(f"sorted/{shard:05d}/features.npy", features[order])
    storage.write(f"sorted/{shard:05d}/rows.npy", start + order)
    storage.write(f"sorted/{shard:05d}/weights.npy", _weights(storage, shard, len(order))[order])
    if how.differs:
        storage.write(f"sorted/{shard:05d}/semantic.npy", semantic[order])
    if factors:
        storage.write(f"sorted/{shard:05d}/factors.npy", factors[0][order])
    counts = np.bincount(cells, minlength=len(centers))
    storage.write(f"sorted/{shard:05d}/ends.npy", np.concatenate([[0], np.cumsum(counts)]))
    return {}


def _weights(storage: Storage, shard: int, n_rows: int) -> NDArray[np.int64]:
    """Return how many images every row stands for: one, unless rows are micro-clusters."""
    name = f"weights/{shard:05d}.npy"
    return np.ones(n_rows, np.int64) if storage.size(name) is None else storage.read(name)


def split_cells(counts: NDArray[np.int64], n_partitions: int) -> NDArray[np.int64]:
    """Return the first cell of every partition, and the end: ranges with as many images each."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    wanted = np.linspace(0, ends[-1], n_partitions + 1)[1:-1]
    firsts = np.searchsorted(ends, wanted, side="left")
    firsts = firsts[ends[firsts] < ends[-1]]  # Empty cells at the end make no partition.
    return np.unique(np.concatenate([[0], firsts, [len(counts)]]))


def gather_nodes(
    storage: Storage,
    partition: int,
    n_shards: int,
    first_cell: int,
    last_cell: int,
    coupling: dict[str, Any],
) -> Result:
    """Collect the images of a range of cells from all shards; copies become one node."""
    how = Coupling(**coupling)
    names = ["features", "rows", "weights"]
    names += ["semantic"] if how.differs else []
    names += ["factors"] if how.has_nouns else []
    ends = [storage.read(f"sorted/{s:05d}/ends.npy") for s in range(n_shards)]
    found = {
        name: np.concatenate(
            [
                storage.read(f"sorted/{s:05d}/{name}.npy", int(e[first_cell]), int(e[last_cell]))
                for s, e in enumerate(ends)
            ]
        )
        for name in names
    }
    cells = np.concatenate(
        [
            np.repeat(np.arange(first_cell, last_cell), np.diff(e[first_cell : last_cell + 1]))
            for e in ends
        ]
    )
    order = np.lexsort((found["rows"], cells))
    found, cells = {name: part[order] for name, part in found.items()}, cells[order]
    parts = [found[name] for name in ("features", "semantic") if name in found]
    # The first of equal rows is the original; in another cell, equal rows would be near ties.
    originals = find_originals(*parts, cells[:, None].astype(np.float32))
    is_node = originals == np.arange(len(originals))
    node = np.cumsum(is_node) - 1
    found["weights"] = np.bincount(node[originals], found["weights"], node[-1] + 1)[node]
    for name in names:
        storage.write(f"nodes/{partition:05d}/{name}.npy", found[name][is_node])
    copies = np.flatnonzero(~is_node)
    storage.write(
        f"nodes/{partition:05d}/copies.npy",
        np.stack([found["rows"][copies], node[originals[copies]]], axis=1),
    )
    counts = np.bincount(cells[is_node] - first_cell, minlength=last_cell - first_cell)
    return {"counts": counts.tolist(), "n_copies": len(copies)}


class NodeReader:
    """Reads ranges of nodes, wherever the partitions end; see `Layout`."""

    def __init__(self, storage: Storage, layout: Layout) -> None:
        self._storage, self._starts = storage, layout.starts

    def __call__(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Return the rows of an array for nodes from `start` to `stop`."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts = []
        while start < stop:
            low, high = int(self._starts[first]), int(self._starts[first + 1])
            end = min(stop, high)
            if end > start:
                path = f"nodes/{first:05d}/{name}.npy"
                parts.append(self._storage.read(path, start - low, end - low))
                start = end
            first += 1
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Layout(NamedTuple):
    """Where nodes are: the first node of every partition and of every cell, and the ends."""

    starts: NDArray[np.int64]  # (n_partitions + 1,)
    cells: NDArray[np.int64]  # (n_cells + 1,)
    cell_starts: NDArray[np.int64]  # (n_partitions + 1,), the first cell of every partition

    @property
    def n_partitions(self) -> int:
        """The number of partitions."""
        return len(self.starts) - 1

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.starts[-1])

    def nodes(self, cell: int) -> NDArray[np.int64]:
        """Return the nodes of a cell."""
        return np.arange(self.cells[cell], self.cells[cell + 1])

    @classmethod
    def read(cls, storage: Storage) -> Layout:
        """Read the layout of a run."""
        return cls(**storage.read_several("layout.npz"))


def kernel_of(
    storage: Storage, coupling: Coupling, features: NDArray[Any], semantic: NDArray[Any] | None
) -> Kernel:
    """Return the kernel of some images."""
    if not coupling.has_nouns:
        return Kernel(features, features)
    prompts = list(storage.read("choices/nouns.npy"))
    own = features if semantic is None else semantic
    return Kernel(features, own, prompts, coupling.tau, coupling.weight)
