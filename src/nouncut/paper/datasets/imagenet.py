"""ImageNet-1K, its subsets, and its variants under domain shift."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets.class_folders import folder_dataset, load_folders, read_classes
from nouncut.paper.datasets.class_prompts import imagenet_names
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, FileImages
from nouncut.paper.datasets.dataset_files import (
    class_numbers,
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
_KAGGLE = "LOC_val_solution.csv"


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
    """Load one corruption of ImageNet-C at one severity; its images are 224 x 224 already."""
    inside = [
        f"{kind.name}/{level.name}" for kind in subfolders(folder) for level in subfolders(kind)
    ]
    if inside:
        raise InputError(
            f"{printable_path(folder)} has {len(inside)} corruptions and severities. Name one, "
            f"such as imagenet-c/{inside[0]}."
        )
    return load_folders(folder, title)


def load_imagenet_v2(folder: Path, title: str) -> Dataset:
    """Load ImageNet-V2, whose folders are numbered as ImageNet's classes."""
    images, labels, folders = read_classes(folder, IMAGENET_CROP)
    synsets = list(imagenet_names())
    renamed = [synsets[int(name)] if name.isdecimal() else name for name in folders]
    return folder_dataset(title, images, images, labels, renamed)


def load_imagenet_sketch(folder: Path, title: str) -> Dataset:
    """Load ImageNet-Sketch, which the paper's tables call ImageNet-S."""
    inside = folder / "sketch"
    return load_folders(inside if inside.is_dir() else folder, title, IMAGENET_CROP)


def load_synset_folders(folder: Path, title: str) -> Dataset:
    """Load ImageNet-A or ImageNet-R: a folder per synset, and no split."""
    return load_folders(folder, title, IMAGENET_CROP)


def _load_synsets(folder: Path, title: str, only: Collection[str] | None = None) -> Dataset:
    kaggle = folder / "ILSVRC/Data/CLS-LOC"
    folder = kaggle if kaggle.is_dir() else folder
    train, _, _ = read_classes(need(folder, "train"), IMAGENET_CROP, only)
    held_out = need(folder, "val", "test")
    if subfolders(held_out):
        test, labels, synsets = read_classes(held_out, IMAGENET_CROP, only)
    else:
        test, labels, synsets = _read_flat(held_out, only)
    return folder_dataset(title, train, test, labels, synsets)


def _read_flat(
    folder: Path, only: Collection[str] | None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read validation images that are all in one folder."""
    paths = images_in(folder)
    synsets = _validation_synsets(folder, paths)
    kept = [i for i, synset in enumerate(synsets) if only is None or synset in only]
    classes = sorted({synsets[i] for i in kept})
    labels = class_numbers([synsets[i] for i in kept], classes)
    return FileImages(tuple(paths[i] for i in kept), IMAGENET_CROP), labels, tuple(classes)


def _validation_synsets(folder: Path, paths: Sequence[Path]) -> list[str]:
    """Return the classes of validation images: from Kaggle's list, or from the devkit."""
    # Kaggle's list is beside ILSVRC, and the images in ILSVRC/Data/CLS-LOC/val.
    for place in folder.parents[:4]:
        if (place / _KAGGLE).is_file():
            return _kaggle_synsets(place / _KAGGLE, paths)
    data = need(need(folder.parent, _DEVKIT, _KAGGLE), "data")
    truth = read_lines(need(data, "ILSVRC2012_validation_ground_truth.txt"))
    rows = read_mat(need(data, "meta.mat"))["synsets"]
    synset_of = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in rows}
    if len(paths) != len(truth):
        raise InputError(
            f"{printable_path(folder)} has {len(paths):,} images, but the devkit has classes for "
            f"{len(truth):,}. Unpack ILSVRC2012_img_val.tar again."
        )
    return [synset_of[int(number)] for number in truth]


def _kaggle_synsets(path: Path, images: Sequence[Path]) -> list[str]:
    # "ILSVRC2012_val_00048981,n03995372 85 1 499 272": the image, its class and boxes.
    rows = (line.partition(",") for line in read_lines(path)[1:])
    synset_of = {image: boxes.split()[0] for image, _, boxes in rows if boxes.strip()}
    missing = [image.name for image in images if image.stem not in synset_of]
    if missing:
        raise InputError(
            f"{printable_path(path)} has no class for {len(missing):,} of {len(images):,} images; "
            f"the first is {missing[0]}. Download it again."
        )
    return [synset_of[image.stem] for image in images]
