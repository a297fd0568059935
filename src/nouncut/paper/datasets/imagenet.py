"""ImageNet-1K, its subsets, and its variants under domain shift."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets.class_folders import class_name, load_folders, read_classes
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, FileImages
from nouncut.paper.datasets.dataset_files import (
    images_in,
    need,
    packaged_lines,
    read_lines,
    read_mat,
    subfolders,
)

# As TAC prepares ImageNet; images of the other data sets are scaled to the model's own size.
IMAGENET_CROP = CentreCrop(shortest=256, side=224)
_DEVKIT = "ILSVRC2012_devkit_t12"


def load_imagenet(folder: Path, title: str) -> Dataset:
    """Load ImageNet-1K."""
    return _load_synsets(folder, title)


def load_imagenet10(folder: Path, title: str) -> Dataset:
    """Load the ten classes of ImageNet-10."""
    return _load_synsets(folder, title, packaged_lines("imagenet-10.txt"))


def load_imagenet_dogs(folder: Path, title: str) -> Dataset:
    """Load the fifteen breeds of ImageNet-Dogs."""
    return _load_synsets(folder, title, packaged_lines("imagenet-dogs.txt"))


def load_imagenet_c(folder: Path, title: str) -> Dataset:
    """Load one corruption of ImageNet-C at one severity."""
    inside = [
        f"{kind.name}/{level.name}" for kind in subfolders(folder) for level in subfolders(kind)
    ]
    if inside:
        raise InputError(
            f"{printable_path(folder)} has {len(inside)} corruptions and severities. Name one, "
            f"such as imagenet-c/{inside[0]}."
        )
    return load_folders(folder, title, IMAGENET_CROP)


def load_imagenet_v2(folder: Path, title: str) -> Dataset:
    """Load ImageNet-V2, whose folders are numbered as ImageNet's classes."""
    images, labels, names = read_classes(folder, IMAGENET_CROP)
    data = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt")
    synsets = data.read_text("ascii").split()
    renamed = tuple(class_name(synsets[int(n)]) if n.isdecimal() else n for n in names)
    return Dataset(title, images, images, labels, renamed)


def load_imagenet_sketch(folder: Path, title: str) -> Dataset:
    """Load ImageNet-Sketch, which the paper's tables call ImageNet-S."""
    inside = folder / "sketch"
    return load_folders(inside if inside.is_dir() else folder, title, IMAGENET_CROP)


def _load_synsets(folder: Path, title: str, only: Collection[str] | None = None) -> Dataset:
    train, _, _ = read_classes(need(folder, "train"), IMAGENET_CROP, only)
    held_out = need(folder, "val", "test")
    if subfolders(held_out):
        test, labels, names = read_classes(held_out, IMAGENET_CROP, only)
    else:
        test, labels, names = _read_flat(held_out, need(folder, _DEVKIT), only)
    return Dataset(title, train, test, labels, names)


def _read_flat(
    folder: Path, devkit: Path, only: Collection[str] | None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read validation images that are all in one folder; the devkit has their classes."""
    data = need(devkit, "data")
    truth = read_lines(need(data, "ILSVRC2012_validation_ground_truth.txt"))
    rows = read_mat(need(data, "meta.mat"))["synsets"]
    synset_of = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in rows}
    paths = images_in(folder)
    if len(paths) != len(truth):
        raise InputError(
            f"{printable_path(folder)} has {len(paths):,} images, but the devkit has classes for "
            f"{len(truth):,}. Unpack ILSVRC2012_img_val.tar again."
        )
    synsets = [synset_of[int(number)] for number in truth]
    kept = [i for i, synset in enumerate(synsets) if only is None or synset in only]
    classes = sorted({synsets[i] for i in kept})
    labels = np.array([classes.index(synsets[i]) for i in kept], dtype=np.intp)
    images = FileImages(tuple(paths[i] for i in kept), IMAGENET_CROP)
    return images, labels, tuple(class_name(synset) for synset in classes)
