"""CIFAR-10 and CIFAR-20 (the twenty superclasses of CIFAR-100), in the binary version."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nouncut.errors import printable_path
from nouncut.paper.datasets.dataset import Dataset, DatasetFilesError, PixelImages
from nouncut.paper.datasets.finding import lines, need, packaged_lines
from nouncut.paper.datasets.folders import has_split, load_folders

_SHAPE = (3, 32, 32)
_TRAIN_BATCHES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
# The Python version is a pickle, which runs whatever code its maker put in.
_PICKLES = {"data_batch_1": "cifar-10-binary.tar.gz", "test": "cifar-100-binary.tar.gz"}


def load_cifar10(folder: Path) -> Dataset:
    """Load CIFAR-10."""
    if has_split(folder):
        return load_folders(folder, "CIFAR-10")
    _refuse_pickles(folder)
    train = PixelImages(tuple(need(folder, name) for name in _TRAIN_BATCHES), _SHAPE, header=1)
    test = PixelImages((need(folder, "test_batch.bin"),), _SHAPE, header=1)
    names = tuple(lines(need(folder, "batches.meta.txt")))
    return Dataset("CIFAR-10", train, test, _labels(test), names)


def load_cifar20(folder: Path) -> Dataset:
    """Load CIFAR-100 with its twenty superclasses for classes."""
    if has_split(folder):
        return _merge_classes(load_folders(folder, "CIFAR-20"))
    _refuse_pickles(folder)
    # Two bytes before the pixels: the superclass, then the class.
    train = PixelImages((need(folder, "train.bin"),), _SHAPE, header=2)
    test = PixelImages((need(folder, "test.bin"),), _SHAPE, header=2)
    return Dataset("CIFAR-20", train, test, _labels(test), tuple(superclasses()))


def superclasses() -> dict[str, tuple[str, ...]]:
    """Return the twenty superclasses of CIFAR-100 and the classes in them."""
    rows = (line.split(",") for line in packaged_lines("cifar-20.csv")[1:])
    return {
        name: tuple(fine.replace("_", " ") for fine in classes.split()) for name, classes in rows
    }


def _merge_classes(dataset: Dataset) -> Dataset:
    parents = {fine: name for name, classes in superclasses().items() for fine in classes}
    names = [parents.get(name, name) for name in dataset.class_names]
    merged = tuple(dict.fromkeys(names))
    places = np.array([merged.index(name) for name in names])
    return Dataset(dataset.name, dataset.train, dataset.test, places[dataset.labels], merged)


def _labels(images: PixelImages) -> np.ndarray:
    return images.headers()[:, 0].astype(np.intp)


def _refuse_pickles(folder: Path) -> None:
    for name, archive in _PICKLES.items():
        if (folder / name).is_file():
            raise DatasetFilesError(
                f"{printable_path(folder)} is the Python version, whose files are pickles: opening "
                "one runs whatever code is in it. Fetch the binary version instead: "
                f"https://www.cs.toronto.edu/~kriz/{archive}"
            )
