"""The images of a run as arrays, from image files or from a file of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import Projection, join_rows, unit_rows
from nouncut.errors import InputError, printable_path
from nouncut.method.copies import find_originals
from nouncut.method.whitening import half_whitening
from nouncut.models.choose import ChosenEncoder
from nouncut.models.encoder import ImageEncoder
from nouncut.runs.encode import EncodedImages
from nouncut.runs.image_set import ImageSet
from nouncut.runs.sources import FeatureFile, Source

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Collection:
    """Images with features: visual ones to compare images, semantic ones to compare with nouns."""

    source: Literal["images", "features"]
    images: ImageSet
    visual: NDArray[np.float32]
    semantic: NDArray[np.float32] | None
    # How every encoder's visual features were viewed; None for those compared as they are.
    views: tuple[Projection | None, ...] = ()
    # Lengths of the visual features before they were viewed, if one encoder compares the images.
    lengths: NDArray[np.float32] | None = None
    # How images are viewed by words, if words compare them.
    word_view: Projection | None = None
    model: ChosenEncoder | None = None
    # What compared the images with each other, if it was not the model.
    looks: tuple[ImageEncoder, ...] = ()
    n_encoded: int = 0
    # Returns the stored rows of some images, if they are of a known model.
    rows: Callable[[NDArray[np.intp]], NDArray[Any]] | None = None

    def __len__(self) -> int:
        return len(self.images.paths)


def collect_features(
    source: Source,
    images: ImageSet,
    chosen: ChosenEncoder | None,
    views: Sequence[Projection | None] | None = None,
) -> Collection:
    """Read the features of all images; those of image files are in the store by now.

    New images need the `views` of the images that they are compared with.
    """
    if isinstance(source, FeatureFile):
        return _read_feature_file(source, images, chosen, views)
    if chosen is None or not isinstance(images, EncodedImages):
        raise InputError(
            "This run was made from a file of features. Pass a file of features, not images."
        )
    parts, semantic, used = images.features(views)
    view = used[0] if len(used) == 1 and not images.looks else None
    return Collection(
        source="images",
        images=images,
        visual=join_rows(parts),
        semantic=semantic,
        views=tuple(used),
        lengths=images.visual_lengths(view) if view else None,
        model=chosen,
        looks=images.looks,
        n_encoded=images.n_encoded,
        rows=images.rows,
    )


def familiar_rows(collection: Collection) -> NDArray[np.float32]:
    """Return rows whose inner products say how much images look alike; see `familiarity`."""
    if collection.lengths is None or collection.word_view or not collection.views[0]:
        return np.asarray(unit_rows(collection.visual))
    return collection.views[0].cosine_rows(collection.visual, collection.lengths)


def original_images(collection: Collection) -> NDArray[np.intp]:
    """Return the first image with the same content, or the same features, as each image."""
    if collection.images.hashes is not None:
        _, first, inverse = np.unique(
            collection.images.hashes, return_index=True, return_inverse=True
        )
        return np.asarray(first[inverse])
    parts = [part for part in (collection.visual, collection.semantic) if part is not None]
    return find_originals(*parts)


def compare_by_words(collection: Collection, word_features: NDArray[Any]) -> Collection:
    """Replace visual features by what words say about the images."""
    if collection.semantic is None:
        return collection
    view = view_by_words(collection.semantic, word_features)
    return replace(collection, visual=view(unit_rows(collection.semantic)), word_view=view)


def share_features_of_copies(collection: Collection, originals: NDArray[np.intp]) -> Collection:
    """Give copies the features of their originals.

    The same image in another batch may have features that differ in their last digits.
    """
    semantic = collection.semantic
    if np.array_equal(originals, np.arange(len(originals))):
        return collection
    return replace(
        collection,
        visual=collection.visual[originals],
        semantic=None if semantic is None else semantic[originals],
    )


def view_by_words(semantic: NDArray[Any], word_features: NDArray[Any]) -> Projection:
    """Return the view of unit semantic features along the directions in which words differ."""
    directions = unit_rows(word_features)
    values, basis = _principal_axes(directions - directions.mean(axis=0))
    rank = max(1, int(np.sum(values > values[0] * 1e-5)))
    center = unit_rows(semantic).mean(axis=0, dtype=np.float64)
    return Projection(center.astype(np.float32), basis[:rank].T.astype(np.float32))


def _principal_axes(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the singular values of rows, largest first, and the axes that belong to them."""
    if len(rows) <= rows.shape[1]:
        _, values, axes = np.linalg.svd(rows, full_matrices=False)
        return values, axes
    # The left vectors, which nobody needs, would take a minute for 100,000 words. Double precision
    # resolves singular values down to 1e-8 of the largest.
    gram = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.float64)
        gram += part.T @ part
    squares, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(squares, 0.0))[::-1], vectors.T[::-1]


def _read_feature_file(
    source: FeatureFile,
    images: ImageSet,
    chosen: ChosenEncoder | None,
    views: Sequence[Projection | None] | None,
) -> Collection:
    features = source.features
    if chosen is None:
        return Collection("features", images, features, None)
    encoder = chosen.encoder
    if features.shape[1] != encoder.image_dim:
        raise InputError(
            f"{printable_path(source.path)}: rows of {features.shape[1]} numbers are not from "
            f"{encoder.name}, whose rows have {encoder.image_dim}. Pass the `model` that made them."
        )
    visual, semantic = encoder.visual(features), encoder.semantic(features)
    if views is None:
        views = [half_whitening(visual) if encoder.whitens_visual else None]
    view, lengths = views[0], None
    if view:
        visual, lengths = view(visual), view.lengths(visual)
    rows = features.__getitem__
    return Collection(
        "features", images, visual, semantic, (view,), lengths, model=chosen, rows=rows
    )
