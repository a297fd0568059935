"""How large tasks are: everything follows from the memory of a worker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nouncut.compute.eigen import guard_vectors
from nouncut.method.candidates import CELL_SIZE, RANK

# Shares of a worker's memory: for the sample, for one task's rows of a partition, for a group of
# cells with the cells around it, for noun probabilities, and for the panels of a product.
_SAMPLE, _PARTITION, _GROUP, _PROBABILITIES, _PANELS = 0.2, 0.3, 0.4, 0.12, 0.25
# Panels and the rows of the graph together, with what a process needs before it has any data; above
# 0.6 Dask moves data to the disk.
_HELD, _PROCESS_BYTES = 0.55, 160e6
_MOST_SAMPLED = 200_000
# Fewer partitions than this would leave workers idle; smaller ones would only cost time.
_FEWEST_PARTITIONS, _SMALLEST_PARTITION = 8, 2000
# Micro-clusters with which images are compared, per cluster, and the fewest: several times the
# neighbours that place an image, so that enough of them are near.
_LANDMARKS, _FEWEST_LANDMARKS = 100, 20_000
# What a process needs before it has any images: smaller tasks would only cost time.
_LEAST_BYTES = 2**28
# k-means needs this many images per centre.
_SAMPLED_PER_CELL = 20
# Where assigning images to cells and comparing near cells cost the same.
_BALANCE = 64
# Neighbours of the union of all prompts' graphs per neighbour of one; bytes of an edge as it is
# sorted and merged, and more for every prompt (measured: 53 for one prompt).
_UNION, _EDGE_BYTES, _PROMPT_BYTES = 2.5, 33, 20
# A row of the graph that is multiplied: a node has at most 30 neighbours under a prompt, and
# an edge takes a number and an index.
GRAPH_BYTES = _UNION * 30 * 8
# Copies of a block of vectors in a task.
_BLOCKS = 5
# Blocks that a filter holds at once, and halos: each is held where it comes from, where it goes and
# below the own block, and those of the step before may not be freed yet.
_STATES, _HALOS = 4, 5
# A product with fewer columns at once would take too long.
_FEWEST_COLUMNS = 8
# Keys, indices, cosines and values of a candidate.
_CANDIDATE_BYTES = 56


class Sizes(NamedTuple):
    """The numbers of images and features, and the memory of a worker."""

    n_images: int
    width: int  # Numbers per image, visual and semantic.
    n_prompts: int
    worker_bytes: int
    n_workers: int = 1
    share: float = 1.0  # Of a worker's memory that tasks take; smaller with more partitions.

    @property
    def sample(self) -> int:
        """Images of the sample."""
        fits = int(_SAMPLE * self.worker_bytes / (4 * (2 * self.width + 2 * RANK)))
        return max(1, min(self.n_images, _MOST_SAMPLED, fits))

    @property
    def cells(self) -> int:
        """Number of cells."""
        size = max(CELL_SIZE, round(float(self.n_images / _BALANCE) ** 0.5))
        return int(max(1, min(-(-self.n_images // size), self.sample // _SAMPLED_PER_CELL)))

    @property
    def most_near(self) -> int:
        """Cells of mean size that fit in a task beside each other."""
        cell = self.group_bytes(0, -(-self.n_images // self.cells), 0, 0)
        return max(1, min(self.cells, int(_GROUP * self.worker_bytes) // cell))

    def landmarks(self, n_clusters: int) -> int:
        """Return with how many micro-clusters every image is compared."""
        row = 4 * (self.width + n_clusters + self.n_prompts)
        fits = int(_SAMPLE * self.worker_bytes / (2 * row))
        return min(max(_FEWEST_LANDMARKS, _LANDMARKS * n_clusters), fits)

    def partitions(self, n_neighbors: int, n_vectors: int) -> int:
        """Return the number of partitions, as many for each worker if there are enough."""
        fewest = min(_FEWEST_PARTITIONS, -(-self.n_images // _SMALLEST_PARTITION))
        needed = max(fewest, int(np.ceil(self._full_partitions(n_neighbors, n_vectors))))
        return needed + (-needed % self.n_workers if needed > self.n_workers else 0)

    def divided(self, n_partitions: int, n_neighbors: int, n_vectors: int) -> Sizes:
        """Return the sizes of tasks that take no more memory than one of so many partitions.

        The sample does not shrink: what is found in it decides for all images.
        """
        share = self._full_partitions(n_neighbors, n_vectors) / n_partitions
        return self._replace(share=min(1.0, max(share, _LEAST_BYTES / self.worker_bytes)))

    def _full_partitions(self, n_neighbors: int, n_vectors: int) -> float:
        """Return how many partitions take all of the memory that they may."""
        n_edges = _UNION * n_neighbors
        edges = n_edges * (_EDGE_BYTES + self.n_prompts * _PROMPT_BYTES)
        vectors = 4 * _BLOCKS * (n_vectors + guard_vectors(n_vectors))
        row = max(edges, vectors, 8 * self.width)
        return self.n_images * row / (_PARTITION * self.worker_bytes)

    def group_bytes(self, n_own: int, n_around: int, n_candidates: int, n_neighbors: int) -> int:
        """Return the memory of a task that finds the neighbours of some nodes."""
        # Rows twice, as those of candidates are copied, and noun probabilities in few dimensions.
        around = 4 * (2 * self.width + RANK)
        own = _CANDIDATE_BYTES * n_candidates + 16 * n_neighbors * self.n_prompts
        return n_around * around + n_own * own

    @property
    def most_group_bytes(self) -> int:
        """The most memory that such a task may use."""
        return int(_GROUP * self.share * self.worker_bytes)

    @property
    def probability_bytes(self) -> int:
        """Bytes of noun probabilities that a task holds at once."""
        return int(_PROBABILITIES * self.share * self.worker_bytes)

    def panel(self, n_nodes: int, n_halo: int) -> int:
        """Return how many columns of a block are multiplied at once."""
        panels, held = self._product_bytes()
        left = min(panels, held - GRAPH_BYTES * n_nodes)
        return max(_FEWEST_COLUMNS // 2, int(left / (4 * (_STATES * n_nodes + _HALOS * n_halo))))

    @property
    def most_nodes(self) -> int:
        """Nodes of a graph that can be multiplied fast, if each has one other in its halo."""
        panels, held = self._product_bytes()
        row = 4 * (_STATES + _HALOS) * _FEWEST_COLUMNS
        return max(1, int(min(panels / row, held / (row + GRAPH_BYTES))))

    def _product_bytes(self) -> tuple[float, float]:
        """Return the memory of all workers for panels, and for these with the graph."""
        total = self.worker_bytes * self.n_workers
        held = max(_PANELS, _HELD - _PROCESS_BYTES / self.worker_bytes)
        return _PANELS * self.share * total, held * total
