"""The images of a run as arrays, from image files or from a file of features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.images.find import ImageScan, scan_images
from nouncut.method.copies import find_originals
from nouncut.models.choose import ChosenEncoder, load_encoder
from nouncut.models.precomputed import read_features
from nouncut.runs.encode import ImageSet, encode_missing, hash_images
from nouncut.runs.job import Job

FEATURE_SUFFIXES = frozenset({".npy", ".npz", ".parquet", ".safetensors"})


@dataclass(frozen=True)
class FeatureFile:
    """Features that came from a file, with the names of their rows."""

    path: Path
    features: NDArray[np.float32]
    names: tuple[str, ...]


@dataclass(frozen=True)
class WordView:
    """Projects images on the directions in which some words differ."""

    center: NDArray[np.float32]
    basis: NDArray[np.float32]

    def __call__(self, semantic: NDArray[Any]) -> NDArray[np.float32]:
        """Project semantic features (n_images, e) on the basis (e, r)."""
        return np.asarray((unit_rows(semantic) - self.center) @ self.basis, dtype=np.float32)


@dataclass(frozen=True)
class Collection:
    """Images with features: visual ones to compare images, semantic ones to compare with nouns."""

    source: Literal["images", "features"]
    images: ImageSet
    visual: NDArray[np.float32]
    semantic: NDArray[np.float32] | None
    # What was subtracted from the visual features.
    center: NDArray[np.float32] | None = None
    view: WordView | None = None
    model: ChosenEncoder | None = None
    n_encoded: int = 0

    def __len__(self) -> int:
        return len(self.images.paths)


def as_paths(paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    """Return one path or several as absolute paths."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.path.abspath(path) for path in given]


def open_sources(sources: Sequence[AnyPath]) -> ImageScan | FeatureFile:
    """Find images or read features, so that mistakes show before anything is written."""
    if any(is_feature_file(source) for source in sources):
        return _open_features(sources)
    return scan_images(sources)


def is_feature_file(path: AnyPath) -> bool:
    """Return whether a path names a file of features rather than images."""
    return Path(path).suffix.lower() in FEATURE_SUFFIXES and not Path(path).is_dir()


def count_images(source: ImageScan | FeatureFile) -> int:
    """Return how many images a source has at most."""
    return len(source.names if isinstance(source, FeatureFile) else source.files)


def check_enough(n_images: int, n_clusters: int | Literal["auto"]) -> None:
    """Raise unless there are enough images for the clusters."""
    if n_images < 2:
        raise InputError("Only one image can be opened, and two is the minimum. Add images.")
    if n_clusters != "auto" and n_clusters > n_images:
        raise ParameterError(
            f"`n_clusters` is {n_clusters:,}, but there are only {n_images:,} images: ask for "
            "fewer."
        )


def load_model(source: ImageScan | FeatureFile, job: Job) -> ChosenEncoder | None:
    """Load the model; features from a file have one only if the user names it."""
    name = job.settings.model
    if isinstance(source, FeatureFile) and name == "auto":
        return None
    job.progress("loading the model", 0, 1)
    chosen = load_encoder(name)
    job.progress("loading the model", 1, 1)
    return chosen


def list_images(source: ImageScan | FeatureFile, job: Job) -> ImageSet:
    """Hash the image files, or list the rows of a file of features."""
    if isinstance(source, FeatureFile):
        return ImageSet(source.names, None, ())
    return hash_images(source, progress=job.progress, n_jobs=job.n_jobs)


def read_collection(
    source: ImageScan | FeatureFile,
    images: ImageSet,
    chosen: ChosenEncoder | None,
    job: Job,
    center: NDArray[Any] | None = None,
) -> Collection:
    """Encode the images without features, and read the features of all.

    New images need the `center` of the images that they are compared with.
    """
    if isinstance(source, FeatureFile):
        return _read_feature_file(source, images, chosen, center)
    if chosen is None:
        raise InputError(
            "This run was made from a file of features. Pass a file of features, not images."
        )
    encoder = chosen.encoder
    encoded = encode_missing(images, encoder, job.store, progress=job.progress, n_jobs=job.n_jobs)
    if encoder.centers_visual and center is None:
        center = encoded.visual_center()
    return Collection(
        source="images",
        images=encoded,
        visual=encoded.visual(center),
        semantic=encoded.semantic(),
        center=center,
        model=chosen,
        n_encoded=encoded.n_encoded,
    )


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
    return replace(collection, visual=view(collection.semantic), view=view)


def share_features_of_copies(collection: Collection, originals: NDArray[np.intp]) -> Collection:
    """Give copies the features of their originals.

    The same image in another batch may have features that differ in their last digits.
    """
    semantic = collection.semantic
    return replace(
        collection,
        visual=collection.visual[originals],
        semantic=None if semantic is None else semantic[originals],
    )


def view_by_words(semantic: NDArray[Any], word_features: NDArray[Any]) -> WordView:
    """Find the directions in which words differ, from features (n_images, e) and (n_words, e)."""
    directions = unit_rows(word_features)
    differences = directions - directions.mean(axis=0)
    _, values, basis = np.linalg.svd(differences, full_matrices=False)
    rank = max(1, int(np.sum(values > values[0] * 1e-5)))
    center = unit_rows(semantic).mean(axis=0, dtype=np.float64)
    return WordView(center.astype(np.float32), basis[:rank].T.astype(np.float32))


def _open_features(sources: Sequence[AnyPath]) -> FeatureFile:
    if len(sources) > 1:
        raise InputError("Pass one file of features, and no images with it.")
    path = Path(sources[0])
    if not path.exists():
        raise InputError(f"{printable_path(path)} does not exist. Check the spelling.")
    table = read_features(path)
    features = np.ascontiguousarray(table.features, dtype=np.float32)
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{printable_path(path)}: {np.count_nonzero(~finite):,} rows hold values that are not "
            f"finite numbers, the first of them row {np.argmin(finite)} (counted from 0). Remove "
            "these rows."
        )
    return FeatureFile(
        path, features, table.names or tuple(f"row {i}" for i in range(len(features)))
    )


def _read_feature_file(
    source: FeatureFile,
    images: ImageSet,
    chosen: ChosenEncoder | None,
    center: NDArray[Any] | None,
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
    if encoder.centers_visual:
        center = visual.mean(axis=0) if center is None else center
        visual = visual - center
    return Collection("features", images, visual, semantic, center, model=chosen)
