"""Image files whose classes are in lists: DTD, UCF-101, Places365 and five fine-grained sets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets.class_folders import class_name, or_class_folders
from nouncut.paper.datasets.dataset import Dataset, FileImages
from nouncut.paper.datasets.dataset_files import (
    class_numbers,
    images_in,
    need,
    packaged_lines,
    read_lines,
    read_mat,
)


@or_class_folders
def load_dtd(folder: Path, title: str) -> Dataset:
    """Load the Describable Textures Dataset, the first of its ten splits."""
    # torchvision unpacks the archive, a folder dtd, into a folder of that name.
    folder = folder / "dtd" if (folder / "dtd").is_dir() else folder
    lists = need(folder, "labels")
    train = [*read_lines(need(lists, "train1.txt")), *read_lines(need(lists, "val1.txt"))]
    test = read_lines(need(lists, "test1.txt"))
    images = need(folder, "images")
    classes = sorted({entry.split("/")[0] for entry in test})
    return Dataset(
        title,
        FileImages(tuple(images / entry for entry in train)),
        FileImages(tuple(images / entry for entry in test)),
        class_numbers([entry.split("/")[0] for entry in test], classes),
        tuple(class_name(name) for name in classes),
    )


@or_class_folders
def load_ucf101(folder: Path, title: str) -> Dataset:
    """Load the middle frames of UCF-101, the first of its three splits."""
    lists = need(folder, "ucfTrainTestlist")
    names = [line.split()[1] for line in read_lines(need(lists, "classInd.txt"))]
    train, test = (
        [line.split()[0] for line in read_lines(need(lists, f"{part}list01.txt"))]
        for part in ("train", "test")
    )
    frames = {path.stem: path for path in images_in(folder)}
    return Dataset(
        title,
        FileImages(_frames_of(train, frames, folder)),
        FileImages(_frames_of(test, frames, folder)),
        class_numbers([video.split("/")[0] for video in test], names),
        tuple(_split_words(name) for name in names),
    )


@or_class_folders
def load_aircraft(folder: Path, title: str) -> Dataset:
    """Load FGVC-Aircraft; its classes are the variants."""
    data = need(folder, "data")
    images = need(data, "images")
    variants = read_lines(need(data, "variants.txt"))
    train, test = (
        [line.split(" ", 1) for line in read_lines(need(data, f"images_variant_{part}.txt"))]
        for part in ("trainval", "test")
    )
    return Dataset(
        title,
        FileImages(tuple(images / f"{image}.jpg" for image, _ in train)),
        FileImages(tuple(images / f"{image}.jpg" for image, _ in test)),
        class_numbers([variant for _, variant in test], variants),
        tuple(variants),
    )


@or_class_folders
def load_food(folder: Path, title: str) -> Dataset:
    """Load Food-101."""
    meta, images = need(folder, "meta"), need(folder, "images")
    train, test = (read_lines(need(meta, f"{part}.txt")) for part in ("train", "test"))
    classes = read_lines(need(meta, "classes.txt"))
    return Dataset(
        title,
        FileImages(tuple(images / f"{entry}.jpg" for entry in train)),
        FileImages(tuple(images / f"{entry}.jpg" for entry in test)),
        class_numbers([entry.split("/")[0] for entry in test], classes),
        tuple(class_name(name) for name in classes),
    )


@or_class_folders
def load_flowers(folder: Path, title: str) -> Dataset:
    """Load Flowers-102."""
    classes = np.atleast_1d(read_mat(need(folder, "imagelabels.mat"))["labels"])
    split = read_mat(need(folder, "setid.mat"))
    images = need(folder, "jpg")

    def files(*parts: str) -> FileImages:
        numbers = np.concatenate([np.atleast_1d(split[part]) for part in parts])
        return FileImages(tuple(images / f"image_{number:05d}.jpg" for number in numbers))

    # Images and classes count from 1.
    labels = classes[np.atleast_1d(split["tstid"]).astype(np.intp) - 1].astype(np.intp) - 1
    names = tuple(packaged_lines("flowers-102.txt"))
    return Dataset(title, files("trnid", "valid"), files("tstid"), labels, names)


@or_class_folders
def load_pets(folder: Path, title: str) -> Dataset:
    """Load the Oxford-IIIT Pets; the classes are the breeds."""
    annotations, images = need(folder, "annotations"), need(folder, "images")
    # "Abyssinian_100 1 1 1": the image, then its breed's number, which counts from 1.
    train, test = (
        [line.split()[:2] for line in read_lines(need(annotations, f"{part}.txt"))]
        for part in ("trainval", "test")
    )
    names = {int(number): image.rsplit("_", 1)[0] for image, number in (*train, *test)}
    numbers = sorted(names)
    return Dataset(
        title,
        FileImages(tuple(images / f"{image}.jpg" for image, _ in train)),
        FileImages(tuple(images / f"{image}.jpg" for image, _ in test)),
        np.array([numbers.index(int(number)) for _, number in test], dtype=np.intp),
        tuple(class_name(names[number]) for number in numbers),
    )


@or_class_folders
def load_cars(folder: Path, title: str) -> Dataset:
    """Load the Stanford Cars."""
    devkit = need(folder, "devkit")
    with_labels = "cars_test_annos_withlabels.mat"
    test_file = need(folder, with_labels, f"devkit/{with_labels}")
    train = np.atleast_1d(read_mat(need(devkit, "cars_train_annos.mat"))["annotations"])
    test = np.atleast_1d(read_mat(test_file)["annotations"])
    names = np.atleast_1d(read_mat(need(devkit, "cars_meta.mat"))["class_names"])
    return Dataset(
        title,
        FileImages(_car_files(need(folder, "cars_train"), train)),
        FileImages(_car_files(need(folder, "cars_test"), test)),
        # Classes count from 1.
        np.array([int(row["class"]) - 1 for row in test], dtype=np.intp),
        tuple(str(name) for name in names),
    )


@or_class_folders
def load_places(folder: Path, title: str) -> Dataset:
    """Load the validation images of Places365, 256 x 256; the official test set has no classes."""
    # "/a/airport_terminal 4": the letter, the category and its number.
    categories = (line.split() for line in read_lines(need(folder, "categories_places365.txt")))
    names = {int(number): path.split("/", 2)[2] for path, number in categories}
    listed = [line.split() for line in read_lines(need(folder, "places365_val.txt"))]
    images = need(folder, "val_256", "val")
    test = FileImages(tuple(images / image for image, _ in listed))
    numbers = sorted(names)
    labels = class_numbers([number for _, number in listed], list(map(str, numbers)))
    classes = tuple(class_name(names[number].replace("/", " ")) for number in numbers)
    return Dataset(title, test, test, labels, classes)


def _car_files(folder: Path, rows: NDArray[Any]) -> tuple[Path, ...]:
    return tuple(folder / str(row["fname"]) for row in rows)


def _frames_of(videos: Sequence[str], frames: Mapping[str, Path], folder: Path) -> tuple[Path, ...]:
    stems = [Path(video).stem for video in videos]
    missing = [stem for stem in stems if stem not in frames]
    if missing:
        raise InputError(
            f"{printable_path(folder)} has no frame of {len(missing):,} of {len(stems):,} videos; "
            f"the first is {missing[0]}.jpg. nouncut reads images, not videos: save the middle "
            "frame of every video under the video's name, for instance with ffmpeg."
        )
    return tuple(frames[stem] for stem in stems)


def _split_words(name: str) -> str:
    """Return "apply eye makeup" for "ApplyEyeMakeup"; "YoYo" becomes "yo yo"."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()
