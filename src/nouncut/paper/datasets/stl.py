"""STL-10, in its binary files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nouncut.paper.datasets.dataset import Dataset, PixelImages
from nouncut.paper.datasets.finding import lines, need
from nouncut.paper.datasets.folders import has_split, load_folders

_SHAPE = (3, 96, 96)


def load_stl10(folder: Path) -> Dataset:
    """Load STL-10."""
    if has_split(folder):
        return load_folders(folder, "STL-10")
    train, test = (
        PixelImages((need(folder, f"{part}_X.bin"),), _SHAPE, by_columns=True)
        for part in ("train", "test")
    )
    # Labels count from 1.
    labels = np.fromfile(need(folder, "test_y.bin"), dtype=np.uint8).astype(np.intp) - 1
    names = tuple(lines(need(folder, "class_names.txt")))
    return Dataset("STL-10", train, test, labels, names)
