"""Small images in files of raw pixels: CIFAR-10, CIFAR-20, CIFAR-100 and STL-10."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.datasets.cifar_pickles import PickledImages
from nouncut.paper.datasets.class_folders import has_split, load_folders, or_class_folders
from nouncut.paper.datasets.dataset import Dataset, PixelImages
from nouncut.paper.datasets.dataset_files import need, packaged_lines, read_lines

_CIFAR_SHAPE = (3, 32, 32)
_STL_SHAPE = (3, 96, 96)
_CIFAR10_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


@or_class_folders
def load_cifar10(folder: Path, title: str) -> Dataset:
    """Load CIFAR-10: one byte for the class, then the pixels; or its Python version."""
    batches = tuple(f"data_batch_{number}" for number in range(1, 6))
    train, test, labels = _read_cifar(folder, batches, "test_batch", ("labels",), "labels")
    return Dataset(title, train, test, labels, _CIFAR10_NAMES)


def load_cifar20(folder: Path, title: str) -> Dataset:
    """Load the twenty superclasses of CIFAR-100."""
    if has_split(folder):
        return _merge_classes(load_folders(folder, title))
    return _load_cifar100(folder, title, "coarse_labels", tuple(cifar_superclasses()))


@or_class_folders
def load_cifar100(folder: Path, title: str) -> Dataset:
    """Load CIFAR-100, whose classes are numbered by the alphabet."""
    names = sorted(fine for classes in cifar_superclasses().values() for fine in classes)
    return _load_cifar100(folder, title, "fine_labels", tuple(names))


def _load_cifar100(folder: Path, title: str, level: str, names: tuple[str, ...]) -> Dataset:
    """Load CIFAR-100: superclass, class, pixels; or its Python version."""
    kinds = ("coarse_labels", "fine_labels")
    train, test, labels = _read_cifar(folder, ("train",), "test", kinds, level)
    return Dataset(title, train, test, labels, names)


def _read_cifar(
    folder: Path, train: tuple[str, ...], test: str, kinds: tuple[str, ...], level: str
) -> tuple[PixelImages, PixelImages, NDArray[np.intp]]:
    """Read both parts, and the test part's classes; every image has a byte per kind of class."""
    if any((folder / name).is_file() for name in (*train, test)):
        paths = tuple(need(folder, name) for name in train)
        pickled = PickledImages((need(folder, test),), _CIFAR_SHAPE)
        return PickledImages(paths, _CIFAR_SHAPE), pickled, pickled.classes(level)
    paths = tuple(need(folder, f"{name}.bin") for name in train)
    binary = PixelImages((need(folder, f"{test}.bin"),), _CIFAR_SHAPE, header=len(kinds))
    labels = binary.headers()[:, kinds.index(level)].astype(np.intp)
    return PixelImages(paths, _CIFAR_SHAPE, header=len(kinds)), binary, labels


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
