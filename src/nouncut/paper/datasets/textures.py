"""DTD, the Describable Textures Dataset."""

from __future__ import annotations

from pathlib import Path

from nouncut.paper.datasets.dataset import Dataset, FileImages
from nouncut.paper.datasets.finding import lines, need, numbered
from nouncut.paper.datasets.folders import class_name, has_split, load_folders


def load_dtd(folder: Path) -> Dataset:
    """Load DTD, the first of its ten splits."""
    if has_split(folder):
        return load_folders(folder, "DTD")
    lists = need(folder, "labels")
    train = [*lines(need(lists, "train1.txt")), *lines(need(lists, "val1.txt"))]
    test = lines(need(lists, "test1.txt"))
    images = need(folder, "images")
    classes = sorted({entry.split("/")[0] for entry in test})
    return Dataset(
        "DTD",
        FileImages(tuple(images / entry for entry in train)),
        FileImages(tuple(images / entry for entry in test)),
        numbered([entry.split("/")[0] for entry in test], classes),
        tuple(class_name(name) for name in classes),
    )
