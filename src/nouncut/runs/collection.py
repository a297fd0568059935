"""The images of a run as arrays: from files, or from ready-made features."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError, printable_path
from nouncut.images.find import ImageScan, SkippedFile, scan_images
from nouncut.method.copies import find_originals
from nouncut.models.choose import ChosenEncoder, load_encoder
from nouncut.models.precomputed import read_features
from nouncut.runs.encode import FoundImages, encode_found, find_images
from nouncut.store.store import FeatureStore

FEATURE_SUFFIXES = frozenset({".npy", ".npz", ".parquet", ".safetensors"})

Source = Literal["images", "features"]


@dataclass(frozen=True)
class Collection:
    """The images of a run."""

    source: Source
    paths: tuple[str | Path, ...]
    visual: NDArray[np.float32]
    semantic: NDArray[np.float32] | None
    center: NDArray[np.float32] | None = None
    hashes: tuple[str, ...] | None = None
    skipped: tuple[SkippedFile, ...] = ()
    n_encoded: int = 0
    model: ChosenEncoder | None = None


@dataclass(frozen=True)
class ReadyFeatures:
    """Features that came from a file."""

    path: Path
    features: NDArray[np.float32]
    names: tuple[str, ...]


def is_feature_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a file of ready-made features."""
    return Path(path).suffix.lower() in FEATURE_SUFFIXES and not Path(path).is_dir()


def open_sources(sources: Sequence[str | os.PathLike[str]]) -> ImageScan | ReadyFeatures:
    """Look at what the user named, so that a mistake shows before anything is loaded or written."""
    if any(is_feature_file(source) for source in sources):
        return _open_features(sources)
    return scan_images([os.path.abspath(source) for source in sources])


def read_collection(
    source: ImageScan | ReadyFeatures,
    model: str,
    store: FeatureStore,
    *,
    center: NDArray[Any] | None = None,
    announce: Callable[[FoundImages, ChosenEncoder], None] | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Collection:
    """Read a collection, encoding what has no features yet."""
    if isinstance(source, ReadyFeatures):
        return _read_features(source, model, center)
    chosen = _load_model(model, progress)
    found = find_images(source, chosen.encoder, store, progress=progress, n_jobs=n_jobs)
    if announce is not None:
        announce(found, chosen)
    images = encode_found(found, chosen.encoder, store, progress=progress, n_jobs=n_jobs)
    if chosen.encoder.centers_visual and center is None:
        center = images.visual_center()
    return Collection(
        source="images",
        paths=images.paths,
        visual=images.visual(center),
        semantic=images.semantic(),
        center=center,
        hashes=images.hashes,
        skipped=images.skipped,
        n_encoded=images.n_encoded,
        model=chosen,
    )


def original_images(collection: Collection) -> NDArray[np.intp]:
    """Return the first image with the same content as each image, or with the same features."""
    if collection.hashes is not None:
        _, first, inverse = np.unique(collection.hashes, return_index=True, return_inverse=True)
        return np.asarray(first[inverse])
    parts = [part for part in (collection.visual, collection.semantic) if part is not None]
    return find_originals(*parts)


def _load_model(model: str, progress: Progress | None) -> ChosenEncoder:
    report = progress or silent
    report("loading the model", 0, 1)
    chosen = load_encoder(model)
    report("loading the model", 1, 1)
    return chosen


def _open_features(sources: Sequence[str | os.PathLike[str]]) -> ReadyFeatures:
    if len(sources) > 1:
        raise InputError("Give one file of features, not several, and no images beside it.")
    path = Path(sources[0])
    if not path.exists():
        raise FileNotFoundError(f"{printable_path(path)} does not exist. Check the spelling.")
    table = read_features(path)
    features = np.ascontiguousarray(table.features, dtype=np.float32)
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{printable_path(path)}: {np.count_nonzero(~finite):,} rows hold values that are not "
            f"finite numbers, the first of them row {np.argmin(finite)} (counted from 0). Leave "
            "them out."
        )
    names = table.names or tuple(f"row {i}" for i in range(len(features)))
    return ReadyFeatures(path, features, names)


def _read_features(source: ReadyFeatures, model: str, center: NDArray[Any] | None) -> Collection:
    features, names = source.features, source.names
    if model == "auto":
        return Collection("features", names, features, None)
    chosen = load_encoder(model)
    encoder = chosen.encoder
    if features.shape[1] != encoder.image_dim:
        raise InputError(
            f"{printable_path(source.path)}: rows of {features.shape[1]} numbers are not from "
            f"{encoder.name}, whose rows have {encoder.image_dim}. Name the model that made them "
            "with --model."
        )
    visual, semantic = encoder.visual(features), encoder.semantic(features)
    if encoder.centers_visual:
        center = visual.mean(axis=0) if center is None else center
        visual = visual - center
    return Collection("features", names, visual, semantic, center, model=chosen)


@dataclass(frozen=True)
class WordView:
    """Images seen through a few words: only what the words can tell apart is left of them."""

    center: NDArray[np.float32]
    basis: NDArray[np.float32]

    def __call__(self, semantic: NDArray[Any]) -> NDArray[np.float32]:
        """Return features that show what the words can tell."""
        return np.asarray((unit_rows(semantic) - self.center) @ self.basis, dtype=np.float32)


def view_by_words(semantic: NDArray[Any], word_features: NDArray[Any]) -> WordView:
    """Return how images look through some words."""
    directions = unit_rows(word_features)
    differences = directions - directions.mean(axis=0)
    _, values, basis = np.linalg.svd(differences, full_matrices=False)
    rank = max(1, int(np.sum(values > values[0] * 1e-5)))
    center = unit_rows(semantic).mean(axis=0, dtype=np.float64)
    return WordView(center.astype(np.float32), basis[:rank].T.astype(np.float32))
