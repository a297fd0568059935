"""What the images of a cluster say about every noun, against the rest of the collection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.method.kernel import noun_probabilities

# Half the spread of an image's cosines: a handful of nouns stay in play out of tens of thousands,
# whatever range an encoder's cosines have.
_TAU_PER_SPREAD = 0.5
_SMALLEST_TAU = 1e-3
# More images of a cluster hardly move its mean, and cost as much time as its first ones.
_IMAGES_PER_CLUSTER = 256
# A single image points at the wrong nouns as often as not, the mean of a mixed cluster at nouns
# that none of its images shows: images are moved a quarter of the way to their mean.
_SHARE_OF_MEAN = np.float32(0.25)
# The rest of the background is uniform over nouns, so that a collection of one cluster, which is
# its own background, still ranks nouns by their probability.
_SHARE_OF_COLLECTION = 0.9


def spread_tau(features: NDArray[Any], nouns: NDArray[Any]) -> float:
    """Return the temperature at which a few nouns take most of an image's probability.

    Clustering wants probabilities that overlap and so a high temperature; naming wants the best
    few nouns. Half the standard deviation of an image's cosines carries over from one encoder,
    and from one number of nouns, to another.
    """
    sample = features[_evenly_spaced(len(features))]
    spread = (sample @ nouns.T).std(axis=1, dtype=np.float64).mean()
    return max(float(_TAU_PER_SPREAD * spread), _SMALLEST_TAU)


def cluster_probabilities(
    labels: NDArray[Any],
    features: NDArray[Any],
    nouns: NDArray[Any],
    n_clusters: int,
    *,
    tau: float,
) -> NDArray[np.float32]:
    """Return how strongly the images of every cluster point at every noun.

    Images are moved a quarter of the way to the mean of their cluster first: what one image
    points at by chance loses, what a part of the cluster shows does not.
    """
    means = np.zeros((n_clusters, len(nouns)), dtype=np.float32)
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)
        members = members[_evenly_spaced(len(members))]
        if len(members):
            rows = features[members]
            rows = rows + _SHARE_OF_MEAN * (rows.mean(axis=0) - rows)
            means[cluster] = noun_probabilities(rows, [nouns], tau)[0].mean(axis=0)
    return means


def information(
    probabilities: NDArray[Any], sizes: NDArray[Any], uniform: float | NDArray[Any]
) -> NDArray[np.float64]:
    """Return how much every noun tells about every cluster, in nats.

    The lift of a noun is its probability in the cluster over that in the background. Lift alone
    favours nouns that no image points at, probability alone those that every image points at;
    ``p log(p / background)``, a noun's part in the divergence between the two, asks for both.
    """
    weights = sizes / max(sizes.sum(), 1)
    collection = weights @ probabilities
    background = _SHARE_OF_COLLECTION * collection + (1 - _SHARE_OF_COLLECTION) * uniform
    lift = np.maximum(probabilities / background, 1.0)
    return np.asarray(probabilities * np.log(lift), dtype=np.float64)


def _evenly_spaced(n: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, _IMAGES_PER_CLUSTER)).astype(np.intp))
