"""The files of a data set: finding them, and reading its lists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from nouncut.errors import InputError, printable_path
from nouncut.images.formats import IMAGE_SUFFIXES


def need(folder: Path, *names: str) -> Path:
    """Return the first of several files or folders that exists."""
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise InputError(f"{printable_path(folder)} should hold {' or '.join(names)}, and does not.")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not blank."""
    text = path.read_text("utf-8", errors="surrogateescape")
    return [line.strip() for line in text.splitlines() if line.strip()]


def packaged_lines(name: str) -> list[str]:
    """Return the lines of a list that comes with nouncut."""
    data = files("nouncut.paper.datasets").joinpath("data", name)
    return data.read_text("utf-8").splitlines()


def read_mat(path: Path) -> dict[str, Any]:
    """Return the variables of a MATLAB file."""
    content: dict[str, Any] = loadmat(path, squeeze_me=True)
    return content


def images_in(folder: Path) -> list[Path]:
    """Return the image files in a folder and its subfolders."""
    return sorted(_walk(folder, IMAGE_SUFFIXES), key=os.fsencode)


def _walk(folder: Path, suffixes: frozenset[str]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in suffixes:
                yield Path(parent, name)


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder."""
    found = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    return sorted(found, key=os.fsencode)


def class_numbers(classes: Sequence[str], names: Sequence[str]) -> NDArray[np.intp]:
    """Return every class as its position among the names."""
    positions = {name: position for position, name in enumerate(names)}
    unknown = next((name for name in classes if name not in positions), None)
    if unknown is not None:
        raise InputError(
            f"A list of images has the class {unknown!r}, which the list of classes has not. "
            "Unpack the data set again."
        )
    return np.array([positions[name] for name in classes], dtype=np.intp)
