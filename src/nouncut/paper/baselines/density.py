"""Density clustering as people use it today, at the packages' defaults: K is found, not given.

EVoC clusters features directly; HDBSCAN clusters the plane that UMAP makes of them. Both leave some
images as noise. Every other method gives each image a cluster, so noise goes to the cluster with
the nearest mean direction here; as a cluster of its own it would score lower.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN

from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.kmeans import mean_directions
from nouncut.paper.baselines.nearest import nearest_centers

# The neighbours of an image in both packages; fewer images are one cluster.
_NEIGHBORS = 15


def evoc(features: NDArray[np.float32], random_state: int) -> NDArray[np.intp]:
    """Cluster unit rows with EVoC."""
    from evoc import EVoC

    if len(features) <= _NEIGHBORS:
        return np.zeros(len(features), np.intp)
    found = EVoC(random_state=random_state).fit_predict(np.ascontiguousarray(features))
    return assign_noise(features, found)


def umap_hdbscan(features: NDArray[np.float32], random_state: int) -> NDArray[np.intp]:
    """Cluster the plane that UMAP makes of unit rows, whose distances follow the cosines."""
    with warnings.catch_warnings():
        # UMAP warns of features that it leaves out without TensorFlow.
        warnings.simplefilter("ignore", ImportWarning)
        from umap import UMAP
    if len(features) <= _NEIGHBORS:
        return np.zeros(len(features), np.intp)
    # A seed allows one thread only, and UMAP warns if it has to say so.
    plane = UMAP(random_state=random_state, n_jobs=1).fit_transform(features)
    return assign_noise(features, HDBSCAN(copy=True).fit_predict(plane))


def assign_noise(features: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Give noise (label -1) to the cluster with the nearest mean direction; largest first."""
    labels = np.array(labels, dtype=np.intp)
    noise = labels < 0
    if noise.all():
        return np.zeros(len(labels), np.intp)
    centers = mean_directions(features[~noise], labels[~noise], int(labels.max()) + 1)
    labels[noise] = nearest_centers(features[noise], centers).labels
    return order_by_size(labels)
