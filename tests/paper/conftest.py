"""Tiny data sets in the formats they are published in."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

CIFAR10_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def picture(path: Path, colour: int = 0, size: tuple[int, int] = (40, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(zlib.crc32(os.fsencode(path)))
    pixels = rng.integers(0, 80, (size[1], size[0], 3), dtype=np.uint8)
    pixels[..., colour % 3] += 150
    Image.fromarray(pixels).save(path)


def write_lines(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def cifar_records(n: int, headers: list[list[int]], seed: int, side: int = 32) -> bytes:
    """Return records of a class each: its header, then planes of red, green and blue."""
    rng = np.random.default_rng(seed)
    parts = []
    for index in range(n):
        header = headers[index % len(headers)]
        pixels = rng.integers(0, 60, (3, side, side), dtype=np.uint8)
        pixels[header[0] % 3] += np.uint8(40 + 15 * (header[0] // 3))
        parts.append(bytes(header) + pixels.tobytes())
    return b"".join(parts)


def make_cifar10(root: Path, n_test: int = 60, n_classes: int = 10) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    headers = [[label] for label in range(n_classes)]
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(cifar_records(20, headers, number))
    (folder / "test_batch.bin").write_bytes(cifar_records(n_test, headers, 9))
    write_lines(folder / "batches.meta.txt", *CIFAR10_NAMES)
    return folder


def make_cifar100(root: Path) -> Path:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    headers = [[0, 4], [1, 1], [19, 81]]
    (folder / "train.bin").write_bytes(cifar_records(9, headers, 1))
    (folder / "test.bin").write_bytes(cifar_records(6, headers, 2))
    return folder


def pickled_text(data: bytes) -> bytes:
    """Return the instruction by which Python 2 pickled a text."""
    if len(data) < 256:
        return b"U" + bytes([len(data)]) + data
    return b"T" + struct.pack("<i", len(data)) + data


def pickled_batch(records: bytes, header: int, lists: dict[str, int]) -> bytes:
    """Return images as in CIFAR's Python version: a pickle that Python 2 wrote with numpy 1."""
    rows = np.frombuffer(records, np.uint8).reshape(-1, header + 3 * 32 * 32)
    n_images = len(rows)
    byte = b"cnumpy\ndtype\nq\x04U\x02u1K\x00K\x01\x87Rq\x05(K\x03U\x01|NNN"
    byte += 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    shape = b"M" + struct.pack("<H", n_images) + b"M" + struct.pack("<H", 3 * 32 * 32) + b"\x86"
    parts = [b"\x80\x02}q\x01("]
    for name, column in lists.items():
        numbers = b"".join(b"K" + bytes([row[column]]) for row in rows)
        parts.append(pickled_text(name.encode()) + b"q\x02](" + numbers + b"e")
    parts.append(pickled_text(b"data") + b"cnumpy.core.multiarray\n_reconstruct\nq\x06")
    parts.append(b"cnumpy\nndarray\nq\x07K\x00\x85U\x01b\x87Rq\x08(K\x01" + shape + byte + b"\x89")
    parts.append(pickled_text(rows[:, header:].tobytes()) + b"tb")
    names = b"".join(pickled_text(b"image_%d.png" % i) for i in range(n_images))
    parts.append(pickled_text(b"filenames") + b"](" + names + b"eu.")
    return b"".join(parts)


def two_pickled_images() -> bytes:
    return pickled_batch(cifar_records(2, [[0], [1]], seed=1), 1, {"labels": 0})


def make_cifar10_pickles(root: Path) -> Path:
    """Write what `make_cifar10` writes, as torchvision's download has it."""
    binary = make_cifar10(root / "binary")
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for path in binary.glob("*.bin"):
        batch = pickled_batch(path.read_bytes(), 1, {"labels": 0})
        (folder / path.stem).write_bytes(batch)
    return folder


def make_cifar100_pickles(root: Path) -> Path:
    binary = make_cifar100(root / "binary")
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for path in binary.glob("*.bin"):
        lists = {"coarse_labels": 0, "fine_labels": 1}
        (folder / path.stem).write_bytes(pickled_batch(path.read_bytes(), 2, lists))
    return folder


def make_stl10(root: Path) -> Path:
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    for part, n in (("train", 2), ("test", 3)):
        images = np.zeros((n, 3, 96, 96), dtype=np.uint8)
        # Red in the right half: the files run down the columns.
        images[:, 0, 48:, :] = 255
        (folder / f"{part}_X.bin").write_bytes(images.tobytes())
        (folder / f"{part}_y.bin").write_bytes(bytes(1 + i for i in range(n)))
    write_lines(folder / "class_names.txt", "airplane", "bird", "car")
    return folder


def make_dtd(root: Path) -> Path:
    folder = root / "dtd"
    for part, number in (("train1", 0), ("val1", 1), ("test1", 2)):
        entries = [f"{name}/{name}_{number}.jpg" for name in ("banded", "polka-dotted")]
        write_lines(folder / "labels" / f"{part}.txt", *entries)
        for entry in entries:
            picture(folder / "images" / entry)
    return folder


def make_ucf101(root: Path) -> Path:
    folder = root / "UCF-101"
    lists = folder / "ucfTrainTestlist"
    write_lines(lists / "classInd.txt", "1 ApplyEyeMakeup", "2 YoYo")
    train = [("ApplyEyeMakeup/v_ApplyEyeMakeup_g08_c01", 1), ("YoYo/v_YoYo_g08_c01", 2)]
    test = ["ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c01", "YoYo/v_YoYo_g01_c01"]
    write_lines(lists / "trainlist01.txt", *(f"{video}.avi {label}" for video, label in train))
    write_lines(lists / "testlist01.txt", *(f"{video}.avi" for video in test))
    for video in [*(video for video, _ in train), *test]:
        picture(folder / "midframes" / f"{video}.jpg")
    return folder


def make_imagenet(root: Path, *synsets: str, flat: bool = False) -> Path:
    """Write ImageNet with two training and one validation image per synset."""
    folder = root / "imagenet"
    for number, synset in enumerate(synsets):
        for image in range(2):
            picture(folder / "train" / synset / f"{synset}_{image}.JPEG", number)
        name = f"ILSVRC2012_val_{number + 1:08d}.JPEG"
        picture(folder / "val" / ("" if flat else synset) / name, number)
    if flat:
        data = folder / "ILSVRC2012_devkit_t12" / "data"
        # The devkit numbers synsets in an order of its own.
        order = list(reversed(synsets))
        truth = [str(order.index(synset) + 1) for synset in synsets]
        write_lines(data / "ILSVRC2012_validation_ground_truth.txt", *truth)
        rows = np.zeros(len(order), dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O")])
        for number, synset in enumerate(order):
            rows[number] = (number + 1, synset)
        savemat(data / "meta.mat", {"synsets": rows})
    return folder


def make_kaggle_imagenet(root: Path, *synsets: str) -> Path:
    """Write ImageNet as Kaggle's archive unpacks."""
    inside = make_imagenet(root / "unpacked", *synsets, flat=True)
    folder = root / "ILSVRC/Data/CLS-LOC"
    folder.mkdir(parents=True)
    for part in ("train", "val"):
        (inside / part).rename(folder / part)
    images = [f"ILSVRC2012_val_{number + 1:08d}" for number in range(len(synsets))]
    rows = [
        f"{image},{synset} 85 1 499 272 {synset} 1 2 3 4 "
        for image, synset in zip(images, synsets, strict=True)
    ]
    # Kaggle lists the images in no order.
    write_lines(root / "LOC_val_solution.csv", "ImageId,PredictionString", *reversed(rows))
    return folder


def make_places(root: Path) -> Path:
    folder = root / "places365"
    write_lines(
        folder / "categories_places365.txt",
        "/a/airfield 0",
        "/a/airport_terminal 1",
        "/a/apartment_building/outdoor 2",
    )
    images = [f"Places365_val_0000000{number}.jpg" for number in (1, 2, 3)]
    listed = [f"{image} {label}" for image, label in zip(images, (2, 0, 1), strict=True)]
    write_lines(folder / "places365_val.txt", *listed)
    for image in images:
        picture(folder / "val_256" / image, size=(256, 256))
    return folder


def make_aircraft(root: Path) -> Path:
    folder = root / "fgvc-aircraft-2013b"
    data = folder / "data"
    write_lines(data / "variants.txt", "707-320", "F/A-18")
    write_lines(data / "images_variant_trainval.txt", "0000001 707-320", "0000002 F/A-18")
    write_lines(data / "images_variant_test.txt", "0000003 F/A-18", "0000004 707-320")
    for number in range(1, 5):
        picture(data / "images" / f"000000{number}.jpg")
    return folder


def make_food(root: Path) -> Path:
    folder = root / "food-101"
    write_lines(folder / "meta/classes.txt", "apple_pie", "waffles")
    for part, number in (("train", 1), ("test", 2)):
        entries = [f"apple_pie/{number}", f"waffles/{number}"]
        write_lines(folder / f"meta/{part}.txt", *entries)
        for entry in entries:
            picture(folder / "images" / f"{entry}.jpg")
    return folder


def make_flowers(root: Path) -> Path:
    folder = root / "flowers-102"
    for number in range(1, 6):
        picture(folder / "jpg" / f"image_{number:05d}.jpg")
    savemat(folder / "imagelabels.mat", {"labels": np.array([[77, 77, 1, 102, 1]])})
    split = {"trnid": np.array([[1]]), "valid": np.array([[3]]), "tstid": np.array([[4, 5, 2]])}
    savemat(folder / "setid.mat", split)
    return folder


def make_pets(root: Path) -> Path:
    folder = root / "oxford-iiit-pet"
    write_lines(
        folder / "annotations/trainval.txt", "Abyssinian_1 1 1 1", "american_bulldog_1 2 2 1"
    )
    write_lines(folder / "annotations/test.txt", "american_bulldog_2 2 2 1", "Abyssinian_2 1 1 1")
    for name in ("Abyssinian_1", "Abyssinian_2", "american_bulldog_1", "american_bulldog_2"):
        picture(folder / "images" / f"{name}.jpg")
    return folder


def make_cars(root: Path) -> Path:
    folder = root / "stanford-cars"
    (folder / "devkit").mkdir(parents=True)
    names = np.array(["AM General Hummer SUV 2000", "smart fortwo 2012"], dtype=object)
    savemat(folder / "devkit/cars_meta.mat", {"class_names": names})
    files = {
        "train": folder / "devkit/cars_train_annos.mat",
        "test": folder / "cars_test_annos_withlabels.mat",
    }
    for part, path in files.items():
        rows = np.zeros((1, 2), dtype=[("class", "O"), ("fname", "O")])
        rows[0, 0], rows[0, 1] = (2, "00001.jpg"), (1, "00002.jpg")
        savemat(path, {"annotations": rows})
        for number in (1, 2):
            picture(folder / f"cars_{part}" / f"0000{number}.jpg")
    return folder


def make_folders(folder: Path, *classes: str, n: int = 2) -> Path:
    for number, name in enumerate(classes):
        for image in range(n):
            picture(folder / name / f"{image}.png", number)
    return folder


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Return the makers of tiny data sets."""
    return SimpleNamespace(
        cifar10=make_cifar10,
        cifar100=make_cifar100,
        cifar10_pickles=make_cifar10_pickles,
        cifar100_pickles=make_cifar100_pickles,
        two_pickled_images=two_pickled_images,
        kaggle_imagenet=make_kaggle_imagenet,
        places=make_places,
        stl10=make_stl10,
        dtd=make_dtd,
        ucf101=make_ucf101,
        imagenet=make_imagenet,
        aircraft=make_aircraft,
        food=make_food,
        flowers=make_flowers,
        pets=make_pets,
        cars=make_cars,
        folders=make_folders,
        lines=write_lines,
        picture=picture,
    )
