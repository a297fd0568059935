"""Any data set with a folder per class."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets.class_prompts import imagenet_names
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, FileImages
from nouncut.paper.datasets.dataset_files import images_in, need, subfolders
from nouncut.words.wordnet import load_wordnet

_TRAIN_FOLDERS = ("train", "trainval")
_TEST_FOLDERS = ("test", "val", "valid", "validation")
_SYNSET = re.compile(r"n\d{8}")

Loader = Callable[[Path, str], Dataset]


def has_split(folder: Path) -> bool:
    """Tell whether a folder has a part for training and one for testing."""
    return all(
        any((folder / name).is_dir() for name in names) for names in (_TRAIN_FOLDERS, _TEST_FOLDERS)
    )


def or_class_folders(load: Loader) -> Loader:
    """Let a loader also accept train and test folders with a folder per class."""

    @wraps(load)
    def load_either(folder: Path, title: str) -> Dataset:
        return load_folders(folder, title) if has_split(folder) else load(folder, title)

    return load_either


def load_folders(folder: Path, title: str, crop: CentreCrop | None = None) -> Dataset:
    """Load images that are sorted into a folder per class."""
    if not has_split(folder):
        test, labels, classes = read_classes(folder, crop)
        return folder_dataset(title, test, test, labels, classes)
    train, _, _ = read_classes(need(folder, *_TRAIN_FOLDERS), crop)
    test, labels, classes = read_classes(need(folder, *_TEST_FOLDERS), crop)
    return folder_dataset(title, train, test, labels, classes)


def folder_dataset(
    title: str,
    train: FileImages,
    test: FileImages,
    labels: NDArray[np.intp],
    folders: Sequence[str],
) -> Dataset:
    """Return a data set whose classes are named by folders, or by ImageNet's synsets."""
    names = tuple(map(class_name, folders))
    # Two of ImageNet's classes are called "crane": in prompts they need names of their own.
    prompt_names = tuple(
        imagenet_names().get(folder, name.split(",")[0])
        for folder, name in zip(folders, names, strict=True)
    )
    return Dataset(title, train, test, labels, names, prompt_names)


def read_classes(
    folder: Path, crop: CentreCrop | None = None, only: Collection[str] | None = None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read a folder with a folder per class: images, labels and the folders' names."""
    classes = [path for path in subfolders(folder) if only is None or path.name in only]
    if len(classes) < 2 or (only is not None and len(classes) < len(only)):
        wanted = "a folder per class" if only is None else f"the folders {', '.join(only)}"
        raise InputError(
            f"{printable_path(folder)} should have {wanted}, but has {len(classes)} of them. Name "
            "the folder that holds the folders of the classes."
        )
    images = [images_in(path) for path in classes]
    for path, found in zip(classes, images, strict=True):
        if not found:
            raise InputError(
                f"{printable_path(path)} should hold the images of a class, but has no images. "
                "Fill or remove it."
            )
    labels = np.repeat(np.arange(len(classes)), [len(found) for found in images])
    paths = tuple(path for found in images for path in found)
    return FileImages(paths, crop), labels, tuple(path.name for path in classes)


def class_name(folder_name: str) -> str:
    """Return the name of a class; folders may be named by ImageNet's synsets."""
    if _SYNSET.fullmatch(folder_name) and folder_name in load_wordnet():
        return ", ".join(load_wordnet()[folder_name].words)
    return printable_path(folder_name).replace("_", " ").replace("-", " ").strip()
