"""Small images in files of raw pixels: CIFAR-10, CIFAR-20 and STL-10."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets.class_folders import has_split, load_folders, or_class_folders
from nouncut.paper.datasets.dataset import Dataset, PixelImages
from nouncut.paper.datasets.dataset_files import need, packaged_lines, read_lines

_CIFAR_SHAPE = (3, 32, 32)
_STL_SHAPE = (3, 96, 96)
_CIFAR10_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
# CIFAR's Python version holds pickles, which run any code that their author put in.
_PICKLES = {"data_batch_1": "cifar-10-binary.tar.gz", "test": "cifar-100-binary.tar.gz"}


@or_class_folders
def load_cifar10(folder: Path, title: str) -> Dataset:
    """Load CIFAR-10: one byte for the class, then the pixels."""
    _refuse_pickles(folder)
    train = PixelImages(
        tuple(need(folder, name) for name in _CIFAR10_TRAIN), _CIFAR_SHAPE, header=1
    )
    test = PixelImages((need(folder, "test_batch.bin"),), _CIFAR_SHAPE, header=1)
    names = tuple(read_lines(need(folder, "batches.meta.txt")))
    return Dataset(title, train, test, _first_bytes(test), names)


def load_cifar20(folder: Path, title: str) -> Dataset:
    """Load the twenty superclasses of CIFAR-100: superclass, class, pixels."""
    if has_split(folder):
        return _merge_classes(load_folders(folder, title))
    _refuse_pickles(folder)
    train = PixelImages((need(folder, "train.bin"),), _CIFAR_SHAPE, header=2)
    test = PixelImages((need(folder, "test.bin"),), _CIFAR_SHAPE, header=2)
    return Dataset(title, train, test, _first_bytes(test), tuple(cifar_superclasses()))


def cifar_superclasses() -> dict[str, tuple[str, ...]]:
    """Return the twenty superclasses of CIFAR-100 and the classes in them."""
    rows = (line.split(",") for line in packaged_lines("cifar-20.csv")[1:])
    return {
        name: tuple(fine.replace("_", " ") for fine in classes.split()) for name, classes in rows
    }


@or_class_folders
def load_stl10(folder: Path, title: str) -> Dataset:
    """Load STL-10, whose pixels run down the columns."""
    train, test = (
        PixelImages((need(folder, f"{part}_X.bin"),), _STL_SHAPE, by_columns=True)
        for part in ("train", "test")
    )
    # Labels count from 1.
    labels = np.fromfile(need(folder, "test_y.bin"), dtype=np.uint8).astype(np.intp) - 1
    names = tuple(read_lines(need(folder, "class_names.txt")))
    return Dataset(title, train, test, labels, names)


def _merge_classes(dataset: Dataset) -> Dataset:
    parents = {fine: name for name, classes in cifar_superclasses().items() for fine in classes}
    names = [parents.get(name, name) for name in dataset.class_names]
    merged = tuple(dict.fromkeys(names))
    numbers = np.array([merged.index(name) for name in names])
    return Dataset(dataset.name, dataset.train, dataset.test, numbers[dataset.labels], merged)


def _first_bytes(images: PixelImages) -> NDArray[np.intp]:
    return images.headers()[:, 0].astype(np.intp)


def _refuse_pickles(folder: Path) -> None:
    for name, archive in _PICKLES.items():
        if (folder / name).is_file():
            raise InputError(
                f"{printable_path(folder)} is the Python version. Its files are pickles, and "
                "opening a pickle runs any code in it. Download the binary version instead: "
                f"https://www.cs.toronto.edu/~kriz/{archive}"
            )
