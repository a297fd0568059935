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
    """Every image's cluster and second choice.

    Parameters
    ----------
    label : ndarray of shape (n_images,)
        The cluster.
    confidence : ndarray of shape (n_images,)
        Its probability, between 0 and 1.
    second : ndarray of shape (n_images,)
        The most probable other cluster; -1 where there is only one cluster.
    second_confidence : ndarray of shape (n_images,)
        Its probability; 0 where there is only one cluster.
    """

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

    Parameters
    ----------
    embedding : ndarray of shape (n_images, k)
        Unit rows; rows of zeros (images without edges) are equally probable everywhere.
    centers : ndarray of shape (n_clusters, k)
        Unit rows.
    labels : ndarray of shape (n_images,), optional
        Clusters that the images have been given; the nearest centres where left out. The
        confidence is theirs, and may be less than the second choice's.
    temperature : float, optional
        The softmax's temperature, `membership_temperature` of these images by default. For new
        images pass the temperature of the clustered ones.

    Returns
    -------
    Membership
        Label, confidence, second choice and its confidence; equally probable clusters in their
        order.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.membership import cluster_membership
    >>> found = cluster_membership(np.array([[1.0, 0.0], [0.6, 0.8]]), np.eye(2), temperature=0.2)
    >>> found.label, found.confidence.round(3)
    (array([0, 1]), array([0.993, 0.731]))
    >>> found.second, found.second_confidence.round(3)
    (array([1, 0]), array([0.007, 0.269]))
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
    """Return the probability of every cluster for every image.

    Parameters
    ----------
    embedding, centers, temperature
        As for `cluster_membership`.

    Returns
    -------
    ndarray of shape (n_images, n_clusters)
        Rows that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.membership import membership_probabilities
    >>> membership_probabilities(np.array([[0.6, 0.8]]), np.eye(2), temperature=0.2).round(3)
    array([[0.269, 0.731]])
    """
    return _softmax(embedding @ centers.T, temperature)


def membership_temperature(embedding: NDArray[Any], centers: NDArray[Any]) -> float:
    """Choose the temperature of the membership probabilities without labels.

    How many images are placed rightly is estimated between two bounds that bracket it on made data
    and photographs (``benchmarks/membership.py``), both means over images. The squared coordinates
    of a unit row along orthogonal centres are shares of a whole: what the nearest centre has of the
    shares of the two nearest is too high where classes are not what the graph shows. The difference
    of the two cosines themselves is too low where they are. The temperature is the one at which
    the mean confidence lies halfway.

    Parameters
    ----------
    embedding : ndarray of shape (n_images, k)
        Unit rows; rows of zeros are ignored. At most 5,000 of them, evenly spaced, are looked at.
    centers : ndarray of shape (n_clusters, k)
        Unit rows.

    Returns
    -------
    float
        The temperature, between 0.001 and 1000; 1 where it makes no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.membership import membership_temperature
    >>> rows = np.array([[0.96, 0.28], [0.28, 0.96]])  # a share of 0.92, and 0.68 apart
    >>> temperature = membership_temperature(rows, np.eye(2))
    >>> round(float(1 / (1 + np.exp((0.28 - 0.96) / temperature))), 2)
    0.8
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

    Parameters
    ----------
    graph : csr_array of shape (n_images, n_images)
        Symmetric graph, normalised or not.
    labels : ndarray of shape (n_images,)
        Labels 0 to n_clusters - 1.
    n_deviations : float, default=3.0
        How far below the others; the less, the more outliers.

    Returns
    -------
    ndarray of shape (n_outliers,)
        Their indices, ascending. Images without edges are always among them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.membership import outliers
    >>> graph = np.ones((6, 6)) - np.eye(6)
    >>> graph[5, :] = graph[:, 5] = 0.1
    >>> outliers(csr_array(graph), np.zeros(6, dtype=int))
    array([5])
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
