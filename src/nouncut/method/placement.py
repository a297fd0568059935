"""Placement of new images in the embedding of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import (
    choose_neighbors,
    even_mean,
    mean_graph,
    neighbor_graph,
    normalize_rows,
)
from nouncut.method.kernel import Kernel, shifted_features
from nouncut.method.search import query_neighbors

# Cosines of equal rows in single precision are above this.
_SAME_COSINE = 1 - 1e-5
_PAIRS_AT_ONCE = 8192


# The names of the arrays that `Placement.to_arrays` may return.
PLACEMENT_ARRAYS = (
    "model_images",
    "model_degrees",
    "model_mean_degrees",
    "model_weights",
    "model_eigenvectors",
    "model_noun_features",
    "model_tau",
    "model_semantic_weight",
    "model_n_neighbors",
    "model_shifted",
)


class Placement(NamedTuple):
    """The images that were cut, and how the edges of new images to them are weighted."""

    images: NDArray[np.intp]  # (n_cut,), which images of the fit these are
    kernel: Kernel  # of these images; without features for a precomputed graph
    n_neighbors: int
    shifted: bool  # whether images were compared by `shifted_features`
    degrees: NDArray[np.float64]  # (n_prompts, n_cut)
    weights: NDArray[np.float64]  # (n_prompts,)
    mean_degrees: NDArray[np.float64] | None  # (n_cut,)
    vectors: NDArray[Any]  # (n_cut, n_clusters)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the placement as arrays, without the features of the images."""
        arrays = {
            "model_images": self.images,
            "model_degrees": self.degrees,
            "model_weights": self.weights,
            "model_eigenvectors": self.vectors,
            "model_n_neighbors": np.asarray(self.n_neighbors),
            "model_shifted": np.asarray(self.shifted),
        }
        if self.mean_degrees is not None:
            arrays["model_mean_degrees"] = self.mean_degrees
        if self.kernel.prompts:
            arrays["model_noun_features"] = np.stack(self.kernel.prompts)
            arrays["model_tau"] = np.asarray(self.kernel.tau)
            arrays["model_semantic_weight"] = np.asarray(self.kernel.weight)
        return arrays

    def take(self, rows: NDArray[np.intp], images: NDArray[np.intp]) -> Self:
        """Return the placement of some of its images, which are now called `images`."""
        mean = self.mean_degrees
        return self._replace(
            images=images,
            kernel=self.kernel.take(rows),
            degrees=self.degrees[:, rows],
            mean_degrees=None if mean is None else mean[rows],
            vectors=self.vectors[rows],
        )

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], rows: tuple[NDArray[np.float32], ...]
    ) -> Self:
        """Return the placement of these arrays; `rows` are unit features of all images."""
        images, vectors = arrays["model_images"], arrays["model_eigenvectors"]
        prompts, tau = list(arrays.get("model_noun_features", ())), arrays.get("model_tau", 1.0)
        # Runs of version 0.1.0 have no n_neighbors, shifted, mean_degrees and semantic_weight.
        weight = float(arrays.get("model_semantic_weight", 1.0))
        usual = choose_neighbors(len(images), len(arrays["model_centers"])) // 2
        return cls(
            images,
            Kernel(rows[0], rows[-1], prompts, float(tau), weight).take(images),
            int(arrays.get("model_n_neighbors", usual)),
            bool(arrays.get("model_shifted", False)),
            np.asarray(arrays["model_degrees"]),
            np.asarray(arrays["model_weights"]),
            arrays.get("model_mean_degrees"),
            vectors,
        )


def place_images(
    placement: Placement, features: NDArray[Any], semantic: NDArray[Any], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the directions of new images in the embedding, (n_images, n_clusters).

    A new image lies in the mean direction of its nearest images, weighted by its edges to them; an
    image that equals a known one has the same direction. Images without any edge are compared by
    looks alone.
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


def place_rows(placement: Placement, rows: list[csr_array]) -> NDArray[np.float64]:
    """Return the directions of new images, given their edges under every prompt."""
    if len(rows) > len(placement.degrees):
        rows = [even_mean(rows)]
    normalized = [normalize_rows(r, d) for r, d in zip(rows, placement.degrees, strict=True)]
    edges = mean_graph(normalized, placement.weights)
    if placement.mean_degrees is not None:
        edges = normalize_rows(edges, placement.mean_degrees)
    return extend_embedding(edges, placement.vectors)


def connect_images(
    placement: Placement,
    more: tuple[NDArray[Any], ...],
    new: tuple[NDArray[Any], ...],
    n_threads: int = 1,
) -> csr_array:
    """Return normalised edges of new images, (n_new, n_cut + n_more + n_new).

    Neighbours are the images that were cut, `more` images that were placed before, and other new
    ones. The degrees of `more` images are not known; those of an average image stand for them.
    """
    n_cut, n_more, n_new = len(placement.images), len(more[0]), len(new[0])
    cut = placement.kernel
    features = np.concatenate([cut.features, more[0], new[0]])
    semantic = np.concatenate([cut.semantic, more[-1], new[-1]])
    kernel = cut._replace(features=features, semantic=semantic)
    known = placement._replace(kernel=kernel, n_neighbors=placement.n_neighbors + 1)
    rows = _edges(known, new[0], new[-1], placement.shifted, n_threads)
    itself = csr_array(
        (np.ones(n_new), (np.arange(n_new), n_cut + n_more + np.arange(n_new))),
        shape=(n_new, len(features)),
    )
    rows = [csr_array(row - row.multiply(itself)) for row in rows]
    if len(rows) > len(placement.degrees):
        rows = [even_mean(rows)]
    edges = mean_graph(
        [_normalized(r, d, n_more) for r, d in zip(rows, placement.degrees, strict=True)],
        placement.weights,
    )
    if placement.mean_degrees is not None:
        edges = _normalized(edges, placement.mean_degrees, n_more)
    edges.eliminate_zeros()
    return edges


def _normalized(rows: csr_array, degrees: NDArray[Any], n_more: int) -> csr_array:
    """Normalise edges to images with degrees, to others of average degree, and among the rows."""
    own = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
    return normalize_rows(rows, np.concatenate([degrees, np.full(n_more, degrees.mean()), own]))


def extend_embedding(rows: csr_array, vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean directions of the neighbours of new images, given as rows of edges."""
    # Nystroem's formula would divide each coordinate by its eigenvalue. Those of small clusters are
    # tiny, and the division would amplify noise.
    return np.asarray(unit_rows(rows @ vectors.astype(np.float64)))


def _edges(
    placement: Placement,
    features: NDArray[Any],
    semantic: NDArray[Any],
    shifted: bool,
    n_threads: int,
) -> list[csr_array]:
    """Return the kernel values between new images and their nearest, under every prompt."""
    kernel = placement.kernel
    if shifted:
        kernel = kernel._replace(features=shifted_features(kernel.features))
        features = shifted_features(features)
    n_known = len(kernel.features)
    q = min(placement.n_neighbors, n_known)
    found = query_neighbors(kernel, q, features, semantic, n_threads)
    return [neighbor_graph(neighbors, n_known) for neighbors in found]


def _same_images(
    placement: Placement,
    edges: list[csr_array],
    features: NDArray[Any],
    semantic: NDArray[Any],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the new images that equal known ones up to rounding, and those known ones."""
    pairs = even_mean(edges).tocoo()
    cosines = _row_products(features, placement.kernel.features, pairs)
    if semantic is not features:
        cosines = np.minimum(cosines, _row_products(semantic, placement.kernel.semantic, pairs))
    close = np.flatnonzero(cosines > _SAME_COSINE)
    rows, first = np.unique(pairs.row[close], return_index=True)
    return rows, pairs.col[close[first]]


def _row_products(left: NDArray[Any], right: NDArray[Any], pairs: Any) -> NDArray[Any]:
    products = np.empty(pairs.nnz, left.dtype)
    for start in range(0, pairs.nnz, _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        products[part] = np.einsum("ij,ij->i", left[pairs.row[part]], right[pairs.col[part]])
    return products
