"""What a model says about clusters: mean probabilities of nouns or of the model's own classes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

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


class Evidence(NamedTuple):
    """Mean probabilities of concepts, and the shares of images whose best concept each one is.

    Both are (n_clusters, n_concepts); `sizes` counts the images that were looked at.
    """

    probabilities: NDArray[np.float32]
    agreement: csr_array
    sizes: NDArray[np.intp]


def gather_evidence(
    labels: NDArray[Any],
    n_clusters: int,
    n_concepts: int,
    probabilities: Callable[[NDArray[np.intp]], NDArray[Any]],
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Evidence:
    """Average the probabilities (n, n_concepts) of n images over clusters; some of each suffice."""
    means = np.zeros((n_clusters, n_concepts), dtype=np.float32)
    best = [np.empty(0, dtype=np.intp)] * n_clusters
    done = count(1)

    def average(cluster: int) -> None:
        members = np.flatnonzero(labels == cluster)
        members = members[_evenly_spaced(len(members))]
        if len(members):
            rows = probabilities(members)
            means[cluster], best[cluster] = rows.mean(axis=0), rows.argmax(axis=1)
        if progress:
            progress("naming groups", next(done), n_clusters)

    # Rounding depends on the threads of BLAS, so their number is fixed.
    with blas_threads(1):
        run_tasks(average, range(n_clusters), min(n_threads, MAX_THREADS))
    sizes = np.array([len(part) for part in best], dtype=np.intp)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    columns = np.concatenate([*best, np.empty(0, dtype=np.intp)])
    # Entries of the same place add up.
    agreement = csr_array((1 / sizes[clusters], (clusters, columns)), means.shape)
    return Evidence(means, agreement, sizes)


def noun_softmax(
    images: NDArray[Any], nouns: NDArray[Any], tau: float
) -> Callable[[NDArray[np.intp]], NDArray[Any]]:
    """Return a function from numbers of images to their softmax over the nouns."""
    columns = np.ascontiguousarray(nouns.T)
    return lambda members: _noun_probabilities(images[members], columns, tau)


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
    columns = np.ascontiguousarray(nouns.T)

    def probabilities(members: NDArray[np.intp]) -> NDArray[Any]:
        rows = images[members]
        rows = rows + _SHARE_OF_MEAN * (rows.mean(axis=0) - rows)
        return _noun_probabilities(rows, columns, tau)

    n_nouns = len(nouns)
    return gather_evidence(
        labels, n_clusters, n_nouns, probabilities, n_threads=n_threads, progress=progress
    ).probabilities


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
