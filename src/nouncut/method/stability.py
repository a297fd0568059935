"""Quick clusterings of draws of the images, and what they agree about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.graphs import choose_neighbors, normalized_mean, symmetric_graphs
from nouncut.method.kernel import Kernel, noun_probabilities
from nouncut.method.labels import assign_labels
from nouncut.method.neighbors import kernel_neighbors

# Agreement is a mean over images: more images or clusters would only take time.
SAMPLE_SIZE = 2000
MAX_CLUSTERS = 100
# With fewer images, agreement is chance.
FEWEST_IMAGES = 20
# Every draw leaves out a third of the images.
_SHARE_DRAWN = 2 / 3
_PAIRS_OF_DRAWS, _SINGLE_DRAWS = 2, 6
_TOLERANCE = 1e-4


def sample_images(n_images: int) -> NDArray[np.intp]:
    """Return evenly spaced images, all if there are few."""
    return np.linspace(0, n_images - 1, min(n_images, SAMPLE_SIZE)).astype(np.intp)


def mean_probabilities(kernel: Kernel, n_threads: int = 1) -> list[NDArray[Any]]:
    """Return the noun probabilities under the mean prompt; nothing without nouns."""
    if not kernel.prompts:
        return []
    mean = np.asarray(np.mean(kernel.prompts, axis=0, dtype=np.float32))
    return noun_probabilities(kernel.semantic, [mean], kernel.tau, n_threads, kernel.weight)


def quick_labels(
    features: NDArray[Any],
    probabilities: Sequence[NDArray[Any]],
    k: int,
    rng: np.random.RandomState,
    n_threads: int = 1,
) -> NDArray[np.intp]:
    """Cluster a few thousand images by the kernel of one prompt, or by looks alone."""
    q = choose_neighbors(len(features), k)
    found = kernel_neighbors(features, probabilities, q, n_threads=n_threads)
    graph = normalized_mean(symmetric_graphs(found))
    pairs = top_eigenpairs(graph, k, tol=_TOLERANCE, random_state=rng, n_threads=n_threads)
    return assign_labels(pairs.vectors, "cluster_qr")


def agreement(labels: NDArray[Any], others: NDArray[Any]) -> float:
    """Return the adjusted Rand index; chance agreement counts as a hundredth."""
    return max(float(adjusted_rand_score(labels, others)), 0.01)


def self_agreement(
    features: NDArray[Any], k: int, rng: np.random.RandomState, n_threads: int = 1
) -> float:
    """Return how well clusters of two draws of the images agree about the images of both."""
    found = []
    for _ in range(_PAIRS_OF_DRAWS):
        labels = np.full((2, len(features)), -1)
        for own in labels:
            drawn = _draw(len(features), rng)
            own[drawn] = quick_labels(features[drawn], [], k, rng, n_threads)
        shared = (labels >= 0).all(axis=0)
        found.append(agreement(*labels[:, shared]))
    return float(np.mean(found))


def label_stability(
    kernel: Kernel, labels: NDArray[np.intp], rng: np.random.RandomState, n_threads: int = 1
) -> float:
    """Return the share of images that keep their cluster when a third of the images is left out.

    The clusters of every draw are matched one to one with the given ones.
    """
    n_clusters = int(labels.max(initial=0)) + 1
    sample = sample_images(len(labels))
    if n_clusters < 2 or n_clusters > MAX_CLUSTERS or len(sample) < FEWEST_IMAGES:
        return 1.0
    kernel, labels = kernel.take(sample), labels[sample]
    probabilities = mean_probabilities(kernel, n_threads)
    kept = []
    for _ in range(_SINGLE_DRAWS):
        drawn = _draw(len(labels), rng)
        parts = [array[drawn] for array in probabilities]
        k = min(n_clusters, len(drawn) // 2)
        found = quick_labels(kernel.features[drawn], parts, k, rng, n_threads)
        kept.append(_matched_share(found, labels[drawn]))
    return float(np.mean(kept))


def _draw(n_images: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    return np.asarray(rng.permutation(n_images)[: int(_SHARE_DRAWN * n_images)])


def _matched_share(labels: NDArray[np.intp], others: NDArray[np.intp]) -> float:
    shared = np.zeros((labels.max() + 1, others.max() + 1))
    np.add.at(shared, (labels, others), 1)
    return float(shared[linear_sum_assignment(-shared)].sum() / len(labels))
