"""Cohesion of clusters, and their most typical and least certain images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.method.membership import Membership

if TYPE_CHECKING:
    from scipy.sparse import csr_array

N_EXEMPLARS = 12


def cohesion(graph: csr_array, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of every cluster's edge weight that stays within it; 1 without edges."""
    return share_within(edges_within(graph, labels), degrees(graph), labels)


def share_within(
    within: NDArray[np.float64], total: NDArray[np.float64], labels: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the share of the images' edge weight that is within their clusters, per cluster."""
    inside, every = np.bincount(labels, within), np.bincount(labels, total)
    return np.where(every > 0, inside / np.where(every > 0, every, 1), 1.0)


def typical_images(
    graph: csr_array, labels: NDArray[Any], hashes: Sequence[Any] | None = None
) -> list[list[int]]:
    """Return up to twelve images per cluster, heaviest edges into it first, without copies."""
    return heaviest_images(edges_within(graph, labels), labels, hashes)


def heaviest_images(
    weights: NDArray[np.float64],
    labels: NDArray[Any],
    contents: Sequence[Any] | NDArray[Any] | None = None,
) -> list[list[int]]:
    """Return up to twelve images per cluster, the heaviest first, without equal contents."""
    order = np.lexsort((-weights, labels))
    ends = np.cumsum(np.bincount(labels))
    return [_without_copies(images, contents) for images in np.split(order, ends[:-1])]


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


def degrees(graph: csr_array) -> NDArray[np.float64]:
    """Return the weight of every image's edges."""
    return np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()


def edges_within(
    graph: csr_array, labels: NDArray[Any], rows: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Return the weight of the edges into an image's own cluster, for all images or some rows."""
    indptr, indices, data, own = graph.indptr, graph.indices, graph.data, labels
    if rows is not None:
        own, starts, counts = labels[rows], indptr[rows], np.diff(indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        edges = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        indices, data = indices[edges], data[edges]
    owners = np.repeat(np.arange(len(own)), np.diff(indptr))
    same = own[owners] == labels[indices]
    return np.bincount(owners[same], data[same], len(own)).astype(np.float64)


def _without_copies(
    images: NDArray[np.intp], contents: Sequence[Any] | NDArray[Any] | None
) -> list[int]:
    if contents is None:
        return [int(i) for i in images[:N_EXEMPLARS]]
    first: dict[Any, int] = {}
    for i in images:
        first.setdefault(contents[i], int(i))
        if len(first) == N_EXEMPLARS:
            break
    return list(first.values())
