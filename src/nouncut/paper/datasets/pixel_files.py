"""Small images in files of raw pixels: CIFAR-10, CIFAR-20, CIFAR-100 and STL-10."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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
    batches = [f"data_batch_{number}" for number in range(1, 6)]
    if (folder / "test_batch").is_file():
        train, test = (
            PickledImages(tuple(need(folder, name) for name in names), _CIFAR_SHAPE)
            for names in (batches, ["test_batch"])
        )
        return Dataset(title, train, test, test.classes("labels"), _CIFAR10_NAMES)
    train, test = (
        PixelImages(tuple(need(folder, f"{name}.bin") for name in names), _CIFAR_SHAPE, header=1)
        for names in (batches, ["test_batch"])
    )
    return Dataset(title, train, test, _header_bytes(test, 0), _CIFAR10_NAMES)


def load_cifar20(folder: Path, title: str) -> Dataset:
    """Load the twenty superclasses of CIFAR-100."""
    if has_split(folder):
        return _merge_classes(load_folders(folder, title))
    return _load_cifar100(folder, title, "coarse", tuple(cifar_superclasses()))


@or_class_folders
def load_cifar100(folder: Path, title: str) -> Dataset:
    """Load CIFAR-100, whose classes are numbered by the alphabet."""
    names = sorted(fine for classes in cifar_superclasses().values() for fine in classes)
    return _load_cifar100(folder, title, "fine", tuple(names))


def _load_cifar100(
    folder: Path, title: str, level: Literal["coarse", "fine"], names: tuple[str, ...]
) -> Dataset:
    """Load CIFAR-100: superclass, class, pixels; or its Python version."""
    if (folder / "test").is_file():
        train, test = (
            PickledImages((need(folder, part),), _CIFAR_SHAPE) for part in ("train", "test")
        )
        return Dataset(title, train, test, test.classes(f"{level}_labels"), names)
    train, test = (
        PixelImages((need(folder, f"{part}.bin"),), _CIFAR_SHAPE, header=2)
        for part in ("train", "test")
    )
    return Dataset(title, train, test, _header_bytes(test, int(level == "fine")), names)


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


def _header_bytes(images: PixelImages, column: int) -> NDArray[np.intp]:
    return images.headers()[:, column].astype(np.intp)
