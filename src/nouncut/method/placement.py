"""Placing new images into a fitted embedding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.extension import extend_embedding
from nouncut.method.graphs import even_mean, mean_graph, neighbor_graph, normalize_rows
from nouncut.method.kernel import looks_only
from nouncut.method.search import query_neighbors

# Rounding keeps cosines of equal rows of single precision above this.
_SAME_COSINE = 1 - 1e-5
_PAIRS_AT_ONCE = 8192


class Placement(NamedTuple):
    """What new images are compared with, and how their edges are weighed."""

    features: NDArray[np.float32]
    semantic: NDArray[np.float32]
    prompts: list[NDArray[np.float32]]
    tau: float
    n_neighbors: int
    shifted: bool
    degrees: NDArray[np.float64]
    weights: NDArray[np.float64]
    mean_degrees: NDArray[np.float64] | None
    vectors: NDArray[Any]


def place_images(
    placement: Placement, features: NDArray[Any], semantic: NDArray[Any], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the directions of new images in the embedding.

    A new image lies where its nearest images lie, weighed by the edges that it would have; one
    that equals a known image lies where that does. Images without any edge are placed by looks
    alone.
    """
    edges = _edges(placement, features, semantic, placement.shifted, n_threads)
    embedding = place_rows(placement, edges)
    same, known = _same_images(placement, edges, features, semantic)
    embedding[same] = unit_rows(placement.vectors[known])
    alone = np.flatnonzero(~embedding.any(axis=1) & features.any(axis=1))
    if len(alone):
        edges = _edges(placement, features[alone], semantic[alone], True, n_threads)
        embedding[alone] = place_rows(placement, edges)
    return embedding


def _edges(
    placement: Placement,
    features: NDArray[Any],
    semantic: NDArray[Any],
    shifted: bool,
    n_threads: int,
) -> list[csr_array]:
    """Return the kernel values between new images and their nearest, under every prompt."""
    known = placement.features
    if shifted:
        known, features = looks_only(known), looks_only(features)
    found = query_neighbors(
        known,
        placement.semantic,
        placement.prompts,
        placement.tau,
        min(placement.n_neighbors, len(known)),
        (features, semantic),
        n_threads=n_threads,
    )
    return [neighbor_graph(neighbors, len(known)) for neighbors in found]


def _same_images(
    placement: Placement,
    edges: list[csr_array],
    features: NDArray[Any],
    semantic: NDArray[Any],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the new images that are known ones but for rounding, and which ones they are."""
    pairs = even_mean(edges).tocoo()
    cosines = _row_products(features, placement.features, pairs)
    if semantic is not features:
        cosines = np.minimum(cosines, _row_products(semantic, placement.semantic, pairs))
    close = np.flatnonzero(cosines > _SAME_COSINE)
    rows, first = np.unique(pairs.row[close], return_index=True)
    return rows, pairs.col[close[first]]


def _row_products(left: NDArray[Any], right: NDArray[Any], pairs: Any) -> NDArray[Any]:
    products = np.empty(pairs.nnz, left.dtype)
    for start in range(0, pairs.nnz, _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        products[part] = np.einsum("ij,ij->i", left[pairs.row[part]], right[pairs.col[part]])
    return products


def place_rows(placement: Placement, rows: list[csr_array]) -> NDArray[np.float64]:
    """Return the directions of new images, given their edges under every prompt."""
    if len(rows) > len(placement.degrees):
        rows = [even_mean(rows)]
    normalized = [normalize_rows(r, d) for r, d in zip(rows, placement.degrees, strict=True)]
    edges = mean_graph(normalized, placement.weights)
    if placement.mean_degrees is not None:
        edges = normalize_rows(edges, placement.mean_degrees)
    return extend_embedding(edges, placement.vectors)
