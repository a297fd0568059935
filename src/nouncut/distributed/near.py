"""Cells that may hold an image's nearest images: those near its own, and a few that it visits.

Cells are balanced groups of similar images, but neighbours have large kernel values, not small
distances: images with sure nouns are neighbours of many. So the kernel values of cells' means say
which cells are near. An image that has large values with other cells visits these too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import label_matrix
from nouncut.distributed.storage import Storage

# Cells that an image visits at most, with the cells near them, and their kernel value as a share of
# the largest. On made collections an image visits 0.2 to 1 cells, which finds as many neighbours as
# ten times the near cells without visits.
VISITS, _CLOSE = 2, 0.9
# The search may miss this share of the neighbours. With nouns, near cells (with visits) may miss
# half of it, and candidates by the mean prompt the other half. Cells are judged by the neighbours
# in the sample; those of all images are nearer, so fewer of them are missed.
MISSED = 0.01
_FEWEST_NEAR = 4


class CellMeans(NamedTuple):
    """Mean rows of the images of every cell (n_cells, width)."""

    features: NDArray[np.float32]
    factors: NDArray[np.float32] | None = None

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.features)

    def kernel(self, features: NDArray[Any], *factors: NDArray[Any]) -> NDArray[np.float32]:
        """Return the kernel values (n_images, n_cells) of images with the means."""
        values = features @ self.features.T
        if self.factors is not None:
            values *= factors[0] @ self.factors.T
        return np.asarray(values, np.float32)

    def write(self, storage: Storage) -> None:
        """Write the means to files."""
        for name, part in self._asdict().items():
            if part is not None:
                storage.write(f"cells/{name}.npy", part)

    @classmethod
    def read(cls, storage: Storage) -> CellMeans:
        """Read the means from files."""
        names = [name for name in cls._fields if storage.size(f"cells/{name}.npy") is not None]
        return cls(*(np.asarray(storage.read(f"cells/{name}.npy")) for name in names))


def mean_rows(
    rows: NDArray[np.float32], cells: NDArray[np.intp], n_cells: int
) -> NDArray[np.float32]:
    """Return the mean row of every cell."""
    sums = label_matrix(cells, n_cells).astype(np.float32).T @ rows
    sizes = np.bincount(cells, minlength=n_cells)[:, None]
    return np.asarray(sums / np.maximum(sizes, 1), np.float32)


def near_cells(means: CellMeans, n_near: int) -> NDArray[np.int32]:
    """Return the cells with the largest kernel values for every cell, itself first."""
    kernel = means.kernel(*(part for part in means if part is not None))
    np.fill_diagonal(kernel, np.inf)
    return np.argsort(-kernel, axis=1, kind="stable")[:, :n_near].astype(np.int32)


def visited_cells(
    kernel: NDArray[np.float32], cells: NDArray[np.intp], near: NDArray[np.int32]
) -> NDArray[np.intp]:
    """Return the cells (n_images, VISITS) that images of some cells visit, -1 if fewer.

    They are not near the own cell nor each other. `kernel` has the values of images with all cells;
    it is changed.
    """
    images = np.arange(len(cells))
    enough = _CLOSE * kernel.max(axis=1)
    visits, last = np.full((len(cells), VISITS), -1), cells
    for number in range(VISITS):
        np.put_along_axis(kernel, near[last], -np.inf, axis=1)
        best = np.argmax(kernel, axis=1)
        is_close = kernel[images, best] >= enough
        visits[is_close, number] = best[is_close]
        last = np.where(is_close, best, last)
    return visits


def near_needed(
    means: CellMeans,
    checked: tuple[NDArray[np.intp], NDArray[np.intp]],
    cells: NDArray[np.intp],
    *rows: NDArray[np.float32],
) -> int:
    """Return how many near cells hold nearly all neighbours of some sampled images."""
    images, neighbors = checked
    present, own = neighbors >= 0, cells[images]
    kernel = means.kernel(*(part[images] for part in rows))
    missed = MISSED if means.factors is None else MISSED / 2
    n_near = _FEWEST_NEAR
    while n_near < means.n_cells:
        near = near_cells(means, n_near)
        is_covered = np.zeros(kernel.shape, bool)
        for visited in (own, *visited_cells(kernel.copy(), own, near).T):
            there = np.flatnonzero(visited >= 0)
            is_covered[there[:, None], near[visited[there]]] = True
        found = np.take_along_axis(is_covered, cells[neighbors], axis=1)
        if found[present].mean() >= 1 - missed:
            break
        n_near *= 2
    return min(n_near, means.n_cells)
