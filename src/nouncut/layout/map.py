"""From a clustering to a map of its images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.progress import Progress
from nouncut.compute.threads import blas_threads
from nouncut.layout.descent import descend
from nouncut.layout.discs import pack_discs, rounded_clusters
from nouncut.layout.start import initial_positions, neighbor_affinities

# Free space around a cluster, as a share of the mean radius.
_GAP = 0.3


def map_images(
    embedding: NDArray[Any],
    graph: csr_array,
    labels: NDArray[Any],
    *,
    random_state: int | np.random.RandomState | None = 0,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Return (n, 2) positions of all images on a square map, from 0 to 1.

    The map is a t-SNE of the clustering's own normalised graph, started from its spectral
    embedding (unit rows). Then every cluster becomes a disc whose area is proportional to its
    size, and the discs are packed into a square without overlap. The map depends on the seed, not
    on the number of threads.
    """
    labels = np.asarray(labels, dtype=np.intp)
    if len(labels) < 2:
        return np.full((len(labels), 2), 0.5, dtype=np.float32)
    embedding = np.asarray(embedding)
    rng = check_random_state(random_state)
    start = initial_positions(embedding, graph, labels, rng, n_threads=n_threads)
    affinities = neighbor_affinities(embedding, graph, labels)
    # One BLAS thread makes the map independent of the number of cores.
    with blas_threads(1):
        positions = descend(start, affinities, rng, n_threads=n_threads, progress=progress)
    return _scaled_to_unit_square(_separate_clusters(positions, labels))


def _separate_clusters(
    positions: NDArray[np.float32], labels: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Give every cluster its own disc."""
    present, labels = np.unique(labels, return_inverse=True)
    centers, offsets = rounded_clusters(positions, labels)
    radii = np.sqrt(np.bincount(labels, minlength=len(present)))
    packed = pack_discs(centers, radii + _GAP * radii.mean())
    # Images are about one apart: half of that stays free at the rim.
    separated: NDArray[np.float64] = packed[labels] + (radii - 0.5)[labels, None] * offsets
    return separated


def _scaled_to_unit_square(positions: NDArray[np.float64]) -> NDArray[np.float32]:
    lowest, highest = positions.min(axis=0), positions.max(axis=0)
    span = max((highest - lowest).max(), np.finfo(np.float32).tiny)
    scaled = np.clip((positions - (lowest + highest) / 2) / span + 0.5, 0, 1)
    return np.asarray(scaled, dtype=np.float32)
