"""Finding the files of a data set, and reading its lists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.images.formats import image_suffixes
from nouncut.paper.datasets.dataset import DatasetFilesError


def need(folder: Path, *names: str) -> Path:
    """Return the first of some files or folders that is there."""
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise DatasetFilesError(f"{printable_path(folder)} has no {' or '.join(names)}.")


def lines(path: Path) -> list[str]:
    r"""Return the lines of a text file that say something."""
    text = path.read_text("utf-8", errors="surrogateescape")
    return [line.strip() for line in text.splitlines() if line.strip()]


def packaged_lines(name: str) -> list[str]:
    """Return the lines of a list that comes with nouncut."""
    data = files("nouncut.paper.datasets").joinpath("data", name)
    return data.read_text("utf-8").splitlines()


def images_in(folder: Path) -> list[Path]:
    """Return the image files in a folder and its subfolders."""
    return sorted(_walk(folder, image_suffixes()), key=os.fsencode)


def _walk(folder: Path, suffixes: frozenset[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in suffixes:
                yield Path(place, name)


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder."""
    found = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    return sorted(found, key=os.fsencode)


def numbered(classes: Sequence[str], names: Sequence[str]) -> NDArray[np.intp]:
    """Return classes as their places in a list."""
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[name] for name in classes], dtype=np.intp)
