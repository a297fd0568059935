"""How surely every image belongs to its cluster, and which images belong nowhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array

# Temperatures outside make every confidence 1, or every one the same.
_SEARCHED = (1e-3, 1e3)
# So many images settle a temperature.
_SAMPLE_SIZE = 5000
# Makes the median absolute deviation of a normal distribution its standard deviation.
_NORMAL_MAD = 1.4826


class Membership(NamedTuple):
    """Every image's cluster and second choice."""

    label: NDArray[np.intp]
    confidence: NDArray[np.float64]
    second: NDArray[np.intp]
    second_confidence: NDArray[np.float64]


def cluster_membership(
    embedding: NDArray[Any],
    centers: NDArray[Any],
    *,
    labels: NDArray[Any] | None = None,
    temperature: float | None = None,
) -> Membership:
    """Return how surely every image belongs to its cluster, and where it would go else.

    Probabilities are the softmax over clusters of the cosines between an image's direction and
    the centres, divided by a temperature.
    """
    if temperature is None:
        temperature = membership_temperature(embedding, centers)
    elif not temperature > 0:
        raise ValueError(f"temperature must be positive, not {temperature}.")
    probabilities = membership_probabilities(embedding, centers, temperature)
    rows = np.arange(len(probabilities))
    label = probabilities.argmax(axis=1) if labels is None else np.asarray(labels, dtype=np.intp)
    confidence = probabilities[rows, label]
    if len(centers) == 1:
        return Membership(label, confidence, np.full_like(label, -1), np.zeros_like(confidence))
    others = probabilities.copy()
    others[rows, label] = -1
    second = others.argmax(axis=1)
    return Membership(label, confidence, second, probabilities[rows, second])


def membership_probabilities(
    embedding: NDArray[Any], centers: NDArray[Any], temperature: float
) -> NDArray[np.float64]:
    """Return the probability of every cluster for every image."""
    return _softmax(embedding @ centers.T, temperature)


def membership_temperature(embedding: NDArray[Any], centers: NDArray[Any]) -> float:
    """Choose the temperature of the membership probabilities without labels.

    How many images are placed rightly is estimated between two bounds that bracket it on made data
    and photographs (``benchmarks/membership.py``), both means over images. The squared coordinates
    of a unit row along orthogonal centres are shares of a whole: what the nearest centre has of the
    shares of the two nearest is too high where classes are not what the graph shows. The difference
    of the two cosines themselves is too low where they are. The temperature is the one at which
    the mean confidence lies halfway.
    """
    rows = np.flatnonzero(np.any(embedding != 0, axis=1))
    cosines = embedding[rows[:: -(-len(rows) // _SAMPLE_SIZE) or 1]] @ centers.T
    if len(centers) == 1 or not len(cosines):
        return 1.0
    nearest = np.partition(cosines, -2, axis=1)[:, -2:]
    shares = np.square(np.maximum(nearest, 0))
    wholes = shares.sum(axis=1)
    # A row that points away from every centre is anyone's.
    high = np.where(wholes > 0, shares[:, 1] / np.where(wholes > 0, wholes, 1), 0.5).mean()
    low = (nearest[:, 1] - nearest[:, 0]).mean()
    target = (high + low) / 2

    def excess(log_temperature: float) -> float:
        mean = _softmax(cosines, np.exp(log_temperature)).max(axis=1).mean()
        return float(mean - target)

    sharpest, softest = np.log(_SEARCHED)
    if excess(sharpest) <= 0:
        return _SEARCHED[0]
    if excess(softest) >= 0:
        return _SEARCHED[1]
    return float(np.exp(brentq(excess, sharpest, softest, xtol=1e-4)))


def outliers(graph: csr_array, labels: NDArray[Any], n_deviations: float = 3.0) -> NDArray[np.intp]:
    """Return the images that fit nowhere.

    An image fits as well as the sum of its edges into the cluster that it has most of them to.
    Images that nobody chose as a neighbour have few edges, and those between clusters spread
    them; both come out low. The logarithm of that sum is compared with the other images': below
    the median by more than `n_deviations` robust standard deviations (1.4826 times the median
    absolute deviation) is an outlier.
    """
    n = graph.shape[0]
    members = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, int(np.max(labels)) + 1))
    fit = (graph @ members).max(axis=1).toarray().ravel()
    connected = fit > 0
    if not connected.any():
        return np.arange(n)
    logs = np.log(fit[connected])
    middle = np.median(logs)
    # Rounding alone must not make outliers of images that all fit the same.
    deviation = max(_NORMAL_MAD * float(np.median(np.abs(logs - middle))), 1e-9)
    alone = ~connected
    alone[connected] = logs < middle - n_deviations * deviation
    return np.flatnonzero(alone)


def _softmax(cosines: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    weights = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / temperature)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)
