"""Any data set with a folder per class."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, DatasetFilesError, FileImages
from nouncut.paper.datasets.finding import images_in, need, subfolders
from nouncut.words.wordnet import load_wordnet

TRAIN_FOLDERS = ("train", "trainval")
TEST_FOLDERS = ("test", "val", "valid", "validation")
_SYNSET = re.compile(r"n\d{8}")


def has_split(folder: Path) -> bool:
    """Tell whether a folder has a part for training and one for testing."""
    return all(
        any((folder / name).is_dir() for name in names) for names in (TRAIN_FOLDERS, TEST_FOLDERS)
    )


def load_folders(
    folder: Path,
    name: str | None = None,
    *,
    crop: CentreCrop | None = None,
    only: Collection[str] | None = None,
) -> Dataset:
    """Load images that are sorted into a folder per class."""
    name = name or printable_path(folder.resolve().name)
    if not has_split(folder):
        test, labels, classes = read_classes(folder, crop, only)
        return Dataset(name, test, test, labels, classes)
    train, _, _ = read_classes(need(folder, *TRAIN_FOLDERS), crop, only)
    test, labels, classes = read_classes(need(folder, *TEST_FOLDERS), crop, only)
    return Dataset(name, train, test, labels, classes)


def read_classes(
    folder: Path, crop: CentreCrop | None = None, only: Collection[str] | None = None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read a folder that has a folder per class."""
    places = [place for place in subfolders(folder) if only is None or place.name in only]
    if len(places) < 2 or (only is not None and len(places) < len(only)):
        wanted = "a folder per class" if only is None else f"the folders {', '.join(only)}"
        raise DatasetFilesError(
            f"{printable_path(folder)} should have {wanted}, and has "
            f"{len(places)} of them. Give the folder that holds the classes' folders."
        )
    images = [images_in(place) for place in places]
    for place, found in zip(places, images, strict=True):
        if not found:
            raise DatasetFilesError(f"{printable_path(place)} has no images. Fetch or remove it.")
    labels = np.repeat(np.arange(len(places)), [len(found) for found in images])
    paths = tuple(path for found in images for path in found)
    return FileImages(paths, crop), labels, tuple(class_name(place.name) for place in places)


def class_name(folder_name: str) -> str:
    """Return the name of a class from that of its folder."""
    if _SYNSET.fullmatch(folder_name) and folder_name in load_wordnet():
        return ", ".join(load_wordnet()[folder_name].words)
    return printable_path(folder_name).replace("_", " ").replace("-", " ").strip()
