"""How much each noun says about each cluster, compared with the whole collection."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress
from nouncut.compute.softmax import softmax_rows
from nouncut.compute.threads import blas_threads, run_tasks

# Half the spread of an image's cosines: a few of many thousand nouns get most of the probability,
# for any encoder and any number of nouns. Clustering wants a higher temperature.
_TAU_PER_SPREAD = 0.5
_MIN_TAU = 1e-3
# Further images of a cluster hardly change its mean but cost as much time.
IMAGES_PER_CLUSTER = 256
_IMAGES_AT_ONCE = 128
# Every thread needs memory for the probabilities of all nouns.
MAX_THREADS = 4
# One image often points at wrong nouns, and the mean of a mixed cluster at nouns that none of its
# images shows. So each image is moved a quarter of the way to the mean.
_SHARE_OF_MEAN = np.float32(0.25)
# The rest of the background is uniform over nouns. A collection of one cluster is its own
# background, and still ranks nouns by their probability.
_SHARE_OF_COLLECTION = 0.9


def spread_tau(images: NDArray[Any], nouns: NDArray[Any]) -> float:
    """Return the temperature for names, from the spread of the cosines of a sample of images."""
    sample = images[_evenly_spaced(len(images))]
    spread = (sample @ nouns.T).std(axis=1, dtype=np.float64).mean()
    return max(float(_TAU_PER_SPREAD * spread), _MIN_TAU)


def cluster_probabilities(
    labels: NDArray[Any],
    images: NDArray[Any],
    nouns: NDArray[Any],
    n_clusters: int,
    *,
    tau: float,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Return the mean probability (n_clusters, n_nouns) of each noun over a cluster's images."""
    means = np.zeros((n_clusters, len(nouns)), dtype=np.float32)
    columns = np.ascontiguousarray(nouns.T)
    done = count(1)

    def average(cluster: int) -> None:
        members = np.flatnonzero(labels == cluster)
        members = members[_evenly_spaced(len(members))]
        if len(members):
            rows = images[members]
            rows = rows + _SHARE_OF_MEAN * (rows.mean(axis=0) - rows)
            means[cluster] = _noun_probabilities(rows, columns, tau).mean(axis=0)
        if progress:
            progress("naming groups", next(done), n_clusters)

    # Rounding depends on the threads of BLAS, so their number is fixed.
    with blas_threads(1):
        run_tasks(average, range(n_clusters), min(n_threads, MAX_THREADS))
    return means


def information(
    probabilities: NDArray[Any], sizes: NDArray[Any], uniform: float | NDArray[Any]
) -> NDArray[np.float64]:
    """Return ``p log(p / background)`` in nats, zero where p is below the background.

    It is a noun's part of the divergence between the cluster and the background. The ratio alone
    favours nouns that no image points at, and p alone favours nouns that all images point at.
    """
    weights = sizes / max(sizes.sum(), 1)
    collection = weights @ probabilities
    background = _SHARE_OF_COLLECTION * collection + (1 - _SHARE_OF_COLLECTION) * uniform
    lift = np.maximum(probabilities / background, 1.0)
    return np.asarray(probabilities * np.log(lift), dtype=np.float64)


def _noun_probabilities(images: NDArray[Any], columns: NDArray[Any], tau: float) -> NDArray[Any]:
    logits = np.empty((len(images), columns.shape[1]), np.result_type(images, columns))
    # Rounding depends on the number of rows as well.
    for first in range(0, len(images), _IMAGES_AT_ONCE):
        rows = slice(first, first + _IMAGES_AT_ONCE)
        np.matmul(images[rows], columns, out=logits[rows])
    softmax_rows(logits, tau)
    return logits


def _evenly_spaced(n: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, IMAGES_PER_CLUSTER)).astype(np.intp))
