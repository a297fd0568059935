"""Cohesion of clusters, and their most typical and least certain images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.method.membership import Membership

if TYPE_CHECKING:
    from scipy.sparse import csr_array

N_EXEMPLARS = 12


def cohesion(graph: csr_array, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of every cluster's edge weight that stays within it; 1 without edges."""
    n_clusters = int(labels.max()) + 1
    within = np.bincount(labels, _edges_within(graph, labels), n_clusters)
    total = np.bincount(labels, np.asarray(graph.sum(axis=1)).ravel(), n_clusters)
    return np.where(total > 0, within / np.where(total > 0, total, 1), 1.0)


def typical_images(
    graph: csr_array, labels: NDArray[Any], hashes: tuple[str, ...] | None = None
) -> list[list[int]]:
    """Return up to twelve images per cluster, heaviest edges into it first, without copies."""
    order = np.lexsort((-_edges_within(graph, labels), labels))
    ends = np.cumsum(np.bincount(labels))
    return [_without_copies(images, hashes) for images in np.split(order, ends[:-1])]


def borderline_images(membership: Membership) -> list[list[int]]:
    """Return up to twelve images per cluster that nearly belong to another, least certain first.

    They are less than twice as likely to belong to their cluster as to their second choice.
    """
    label, confidence, _, second_confidence = membership
    torn = np.flatnonzero(confidence < 2 * second_confidence)
    found: list[list[int]] = [[] for _ in range(int(label.max()) + 1)]
    for i in torn[np.argsort((confidence - second_confidence)[torn], kind="stable")]:
        if len(found[label[i]]) < N_EXEMPLARS:
            found[label[i]].append(int(i))
    return found


def _edges_within(graph: csr_array, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weight of every image's edges into its own cluster."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    same = labels[rows] == labels[graph.indices]
    return np.bincount(rows[same], graph.data[same], graph.shape[0]).astype(np.float64)


def _without_copies(images: NDArray[np.intp], hashes: tuple[str, ...] | None) -> list[int]:
    if hashes is None:
        return [int(i) for i in images[:N_EXEMPLARS]]
    first: dict[str, int] = {}
    for i in images:
        first.setdefault(hashes[i], int(i))
        if len(first) == N_EXEMPLARS:
            break
    return list(first.values())
