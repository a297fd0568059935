"""Cluster centres in an embedding, and new images between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.labels import cluster_sums


def extend_embedding(rows: csr_array, vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the directions of new images in the embedding of a graph.

    An image lies in the mean direction of its neighbours. Nystroem's formula would divide every
    coordinate by its eigenvalue; those of small clusters are tiny, and what is divided by them is
    mostly noise.
    """
    return np.asarray(unit_rows(rows @ vectors.astype(np.float64)))


def cluster_centers(embedding: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean direction of every cluster."""
    return unit_rows(cluster_sums(embedding, labels)[: labels.max() + 1])


def nearest_center(embedding: NDArray[Any], centers: NDArray[Any]) -> NDArray[np.intp]:
    """Return the cluster whose direction is closest to every row."""
    return np.asarray(np.argmax(embedding @ centers.T, axis=1))
