"""Membership probabilities of images in clusters, and outliers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix
from nouncut.errors import ParameterError

# Outside this range all confidences are 1, or all are equal.
_SEARCHED = (1e-3, 1e3)
# Images that determine the temperature.
_SAMPLE_SIZE = 5000
# Ratio of the standard deviation to the median absolute deviation of a normal distribution.
_NORMAL_MAD = 1.4826


class Membership(NamedTuple):
    """Every image's cluster and second choice (-1 if there is only one), with probabilities."""

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
    """Return the probability of every image's cluster, by default the nearest, and the second.

    Probabilities are the softmax over clusters of the cosines between an image's direction and
    the centres, divided by a temperature.
    """
    if temperature is None:
        temperature = membership_temperature(embedding, centers)
    elif not temperature > 0:
        raise ParameterError(f"`temperature` must be a number above 0; got {temperature}.")
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
    """Return the probability of every cluster for every image, (n_images, n_clusters)."""
    return _softmax(embedding @ centers.T, temperature)


def membership_temperature(
    embedding: NDArray[Any], centers: NDArray[Any], stability: float = 1.0
) -> float:
    """Choose the temperature of the membership probabilities without labels.

    The mean confidence should be the share of correctly placed images. On synthetic data and
    photographs (``benchmarks/membership.py``) it lies between two means over images: the squared
    cosine to the nearest centre as a share of the two largest, which is too high if the graph does
    not show the classes, and the difference between the two largest cosines, which is too low if
    it does. The temperature makes the mean confidence the middle of the two, or the `stability` of
    the labels if that is less: images that change clusters when others are left out are not placed
    surely, however clear their place seems.
    """
    rows = np.flatnonzero(np.any(embedding != 0, axis=1))
    cosines = embedding[rows[:: -(-len(rows) // _SAMPLE_SIZE) or 1]] @ centers.T
    if len(centers) == 1 or not len(cosines):
        return 1.0
    nearest = np.partition(cosines, -2, axis=1)[:, -2:]
    shares = np.square(np.maximum(nearest, 0))
    wholes = shares.sum(axis=1)
    # A row that points away from all centres could belong to either.
    high = np.where(wholes > 0, shares[:, 1] / np.where(wholes > 0, wholes, 1), 0.5).mean()
    low = (nearest[:, 1] - nearest[:, 0]).mean()
    target = min((high + low) / 2, stability)

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
    """Return the images that fit no cluster.

    The fit of an image is the sum of its edges into its best-connected cluster. It is low for
    images that no other image chose as a neighbour, and for images between clusters. An outlier's
    logarithmic fit is more than `n_deviations` robust standard deviations (1.4826 times the median
    absolute deviation) below the median.
    """
    n = graph.shape[0]
    fit = (graph @ label_matrix(np.asarray(labels))).max(axis=1).toarray().ravel()
    connected = fit > 0
    if not connected.any():
        return np.arange(n)
    alone = ~connected
    alone[connected] = fit[connected] < outlier_level(fit[connected], n_deviations)
    return np.flatnonzero(alone)


def outlier_level(fits: NDArray[Any], n_deviations: float = 3.0) -> float:
    """Return the fit below which images are outliers, given those of some images."""
    logs = np.log(fits[fits > 0])
    if not len(logs):
        return np.inf
    middle = np.median(logs)
    # Rounding alone must not make outliers among images with equal fits.
    deviation = max(_NORMAL_MAD * float(np.median(np.abs(logs - middle))), 1e-9)
    return float(np.exp(middle - n_deviations * deviation))


def _softmax(cosines: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    weights = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / temperature)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)
