"""From a clustering to a map of its images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.progress import Progress
from nouncut.layout.descent import descend
from nouncut.layout.discs import pack_discs, rounded_clusters
from nouncut.layout.start import neighbor_pulls, starting_points

# Room around a cluster, as a share of the mean radius.
_GAP = 0.3


def layout_images(
    embedding: NDArray[Any],
    graph: csr_array,
    labels: NDArray[Any],
    *,
    random_state: int | np.random.RandomState | None = 0,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Place all images on a square map.

    The clusters are laid out first, from the affinities between them, and the images start where
    the spectral embedding then puts them. Neighbours in the graph pull each other while all
    images push each other apart (t-SNE on our own graph). At last every cluster becomes a disc
    whose area is proportional to its size, and the discs move together without overlapping.
    """
    labels = np.asarray(labels, dtype=np.intp)
    if len(labels) < 2:
        return np.full((len(labels), 2), 0.5, dtype=np.float32)
    embedding = np.asarray(embedding)
    rng = check_random_state(random_state)
    start = starting_points(embedding, graph, labels, rng, n_threads=n_threads)
    pulls = neighbor_pulls(embedding, graph, labels)
    positions = descend(start, pulls, rng, n_threads=n_threads, progress=progress)
    return _within_unit_square(_settled(positions, labels))


def _settled(positions: NDArray[np.float32], labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Give every cluster a disc of its own."""
    present, labels = np.unique(labels, return_inverse=True)
    centers, offsets = rounded_clusters(positions, labels)
    radii = np.sqrt(np.bincount(labels, minlength=len(present)))
    packed = pack_discs(centers, radii + _GAP * radii.mean())
    # Images have room of about one, so half of that is left free at the rim.
    places: NDArray[np.float64] = packed[labels] + (radii - 0.5)[labels, None] * offsets
    return places


def _within_unit_square(places: NDArray[np.float64]) -> NDArray[np.float32]:
    lowest, highest = places.min(axis=0), places.max(axis=0)
    span = max((highest - lowest).max(), np.finfo(np.float32).tiny)
    scaled = np.clip((places - (lowest + highest) / 2) / span + 0.5, 0, 1)
    return np.asarray(scaled, dtype=np.float32)
