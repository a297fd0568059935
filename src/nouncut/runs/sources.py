"""What a run is made from: image files, or a file of features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.images.find import ImageScan, scan_images
from nouncut.models.choose import ChosenEncoder, load_encoder
from nouncut.models.precomputed import read_features
from nouncut.runs.image_set import ImageSet, hash_images
from nouncut.runs.job import Job

FEATURE_SUFFIXES = frozenset({".npy", ".npz", ".parquet", ".safetensors"})


@dataclass(frozen=True)
class FeatureFile:
    """Features that came from a file, with the names of their rows."""

    path: Path
    features: NDArray[np.float32]
    names: tuple[str, ...]


Source = ImageScan | FeatureFile


def as_paths(paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    """Return one path or several as absolute paths."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.path.abspath(path) for path in given]


def open_sources(sources: Sequence[AnyPath]) -> Source:
    """Find images or read features, so that mistakes show before anything is written."""
    if any(is_feature_file(source) for source in sources):
        return _open_features(sources)
    return scan_images(sources)


def is_feature_file(path: AnyPath) -> bool:
    """Return whether a path names a file of features rather than images."""
    return Path(path).suffix.lower() in FEATURE_SUFFIXES and not Path(path).is_dir()


def count_images(source: Source) -> int:
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


def choose_model(source: Source, job: Job) -> ChosenEncoder | None:
    """Return the model; features from a file have one only if the user names it."""
    name = job.settings.model
    if isinstance(source, FeatureFile) and name == "auto":
        return None
    return load_encoder(name, progress=job.progress)


def list_images(source: Source, job: Job) -> ImageSet:
    """Hash the image files, or list the rows of a file of features."""
    if isinstance(source, FeatureFile):
        return ImageSet(source.names, None, ())
    with job.timed("reading files"):
        return hash_images(source, job.store, progress=job.progress, n_jobs=job.n_jobs)


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
