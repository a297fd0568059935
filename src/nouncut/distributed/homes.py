"""The cell in which an image has its nearest images, and further cells that it visits.

Neighbours have large kernel values, not small distances: images with sure nouns are neighbours of
many. An image's home is therefore the cell whose mean has the largest kernel value with it. Images
whose neighbours may be elsewhere too, because another cell comes close, visit that one as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix
from nouncut.distributed.storage import Storage
from nouncut.method.search import Hardest

# Cells that an image visits at most, and their kernel value as a share of the home's: on made
# collections a quarter of the images visit a cell, and the recall is that of four times the cells.
VISITS, _CLOSE = 2, 0.9
# Near cells, with visits, hold this share of the sample's neighbours, which are farther than those
# of all images.
_FOUND = 0.995
_FEWEST_NEAR = 4
_ROWS_AT_ONCE = 1024


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


def find_homes(means: CellMeans, *rows: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the cell with the largest kernel value for every image."""
    homes = np.empty(len(rows[0]), np.intp)
    for first in range(0, len(homes), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        homes[part] = np.argmax(means.kernel(*(one[part] for one in rows)), axis=1)
    return homes


def near_cells(means: CellMeans, n_near: int) -> NDArray[np.int32]:
    """Return the cells with the largest kernel values for every cell, itself first."""
    kernel = means.kernel(*(part for part in means if part is not None))
    np.fill_diagonal(kernel, np.inf)
    return np.argsort(-kernel, axis=1, kind="stable")[:, :n_near].astype(np.int32)


def near_pairs(near: NDArray[np.int32]) -> csr_array:
    """Return the symmetric graph of cells: two are near if either says so."""
    indptr = np.arange(0, near.size + 1, near.shape[1])
    pairs = csr_array((np.ones(near.size, np.int8), near.ravel(), indptr), shape=(len(near),) * 2)
    pairs = csr_array(pairs.maximum(pairs.T))
    pairs.sort_indices()
    return pairs


def visited_cells(
    kernel: NDArray[np.float32], homes: NDArray[np.intp], pairs: csr_array
) -> NDArray[np.intp]:
    """Return the cells (n_images, VISITS) that images visit, -1 where there are fewer.

    They are not near the home nor each other. `kernel` has the values of images with all cells; it
    is changed.
    """
    images = np.arange(len(homes))
    enough = _CLOSE * kernel[images, homes]
    visits, last = np.full((len(homes), VISITS), -1), homes
    for number in range(VISITS):
        around = pairs[last]
        kernel[np.repeat(images, np.diff(around.indptr)), around.indices] = -np.inf
        best = np.argmax(kernel, axis=1)
        is_close = kernel[images, best] >= enough
        visits[is_close, number] = best[is_close]
        last = np.where(is_close, best, last)
    return visits


def near_needed(
    means: CellMeans, hardest: Hardest, homes: NDArray[np.intp], *rows: NDArray[np.float32]
) -> int:
    """Return how many near cells hold nearly all neighbours of some sampled images."""
    present, own = hardest.neighbors >= 0, homes[hardest.images]
    kernel = means.kernel(*(part[hardest.images] for part in rows))
    n_near = _FEWEST_NEAR
    while n_near < means.n_cells:
        pairs = near_pairs(near_cells(means, n_near))
        visits = visited_cells(kernel.copy(), own, pairs)
        is_covered = pairs[own].toarray() > 0
        for cells in visits.T:
            is_visiting = cells >= 0
            is_covered[is_visiting] |= pairs[cells[is_visiting]].toarray() > 0
        found = np.take_along_axis(is_covered, homes[hardest.neighbors], axis=1)
        if found[present].mean() >= _FOUND:
            break
        n_near *= 2
    return min(n_near, means.n_cells)
