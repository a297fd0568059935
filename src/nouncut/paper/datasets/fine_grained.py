"""The five fine-grained data sets: Aircraft, Food, Flowers, Pets and Cars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from nouncut.paper.datasets.dataset import Dataset, FileImages
from nouncut.paper.datasets.finding import lines, need, numbered, packaged_lines
from nouncut.paper.datasets.folders import class_name, has_split, load_folders


def load_aircraft(folder: Path) -> Dataset:
    """Load FGVC-Aircraft by variants."""
    if has_split(folder):
        return load_folders(folder, "Aircraft")
    data = need(folder, "data")
    images = need(data, "images")
    variants = lines(need(data, "variants.txt"))
    train, test = (
        [line.split(" ", 1) for line in lines(need(data, f"images_variant_{part}.txt"))]
        for part in ("trainval", "test")
    )
    return Dataset(
        "Aircraft",
        FileImages(tuple(images / f"{image}.jpg" for image, _ in train)),
        FileImages(tuple(images / f"{image}.jpg" for image, _ in test)),
        numbered([variant for _, variant in test], variants),
        tuple(variants),
    )


def load_food(folder: Path) -> Dataset:
    """Load Food-101."""
    if has_split(folder):
        return load_folders(folder, "Food")
    meta, images = need(folder, "meta"), need(folder, "images")
    train, test = (lines(need(meta, f"{part}.txt")) for part in ("train", "test"))
    classes = lines(need(meta, "classes.txt"))
    return Dataset(
        "Food",
        FileImages(tuple(images / f"{entry}.jpg" for entry in train)),
        FileImages(tuple(images / f"{entry}.jpg" for entry in test)),
        numbered([entry.split("/")[0] for entry in test], classes),
        tuple(class_name(name) for name in classes),
    )


def load_flowers(folder: Path) -> Dataset:
    """Load Flowers-102."""
    if has_split(folder):
        return load_folders(folder, "Flowers")
    classes = np.atleast_1d(_read_mat(need(folder, "imagelabels.mat"))["labels"])
    split = _read_mat(need(folder, "setid.mat"))
    images = need(folder, "jpg")

    def files(*parts: str) -> FileImages:
        numbers = np.concatenate([np.atleast_1d(split[part]) for part in parts])
        return FileImages(tuple(images / f"image_{number:05d}.jpg" for number in numbers))

    labels = classes[np.atleast_1d(split["tstid"]).astype(np.intp) - 1].astype(np.intp) - 1
    names = tuple(packaged_lines("flowers-102.txt"))
    return Dataset("Flowers", files("trnid", "valid"), files("tstid"), labels, names)


def load_pets(folder: Path) -> Dataset:
    """Load the Oxford-IIIT Pets by breeds."""
    if has_split(folder):
        return load_folders(folder, "Pets")
    annotations, images = need(folder, "annotations"), need(folder, "images")
    # "Abyssinian_100 1 1 1": the image, then its breed's number, which counts from 1.
    train, test = (
        [line.split()[:2] for line in lines(need(annotations, f"{part}.txt"))]
        for part in ("trainval", "test")
    )
    names = {int(number): image.rsplit("_", 1)[0] for image, number in (*train, *test)}
    numbers = sorted(names)
    return Dataset(
        "Pets",
        FileImages(tuple(images / f"{image}.jpg" for image, _ in train)),
        FileImages(tuple(images / f"{image}.jpg" for image, _ in test)),
        np.array([numbers.index(int(number)) for _, number in test], dtype=np.intp),
        tuple(class_name(names[number]) for number in numbers),
    )


def load_cars(folder: Path) -> Dataset:
    """Load the Stanford Cars."""
    if has_split(folder):
        return load_folders(folder, "Cars")
    devkit = need(folder, "devkit")
    marked = "cars_test_annos_withlabels.mat"
    with_labels = need(folder, marked, f"devkit/{marked}")
    train = np.atleast_1d(_read_mat(need(devkit, "cars_train_annos.mat"))["annotations"])
    test = np.atleast_1d(_read_mat(with_labels)["annotations"])
    names = np.atleast_1d(_read_mat(need(devkit, "cars_meta.mat"))["class_names"])
    return Dataset(
        "Cars",
        FileImages(_car_files(need(folder, "cars_train"), train)),
        FileImages(_car_files(need(folder, "cars_test"), test)),
        np.array([int(row["class"]) - 1 for row in test], dtype=np.intp),
        tuple(str(name) for name in names),
    )


def _car_files(folder: Path, rows: NDArray[Any]) -> tuple[Path, ...]:
    return tuple(folder / str(row["fname"]) for row in rows)


def _read_mat(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = loadmat(path, squeeze_me=True)
    return content
