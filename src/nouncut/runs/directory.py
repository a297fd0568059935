"""The files of a run directory, and errors about them."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path

from nouncut.compute.files import NEW_SUFFIX, explained_writing
from nouncut.errors import InputError, printable_path

FORMAT = 1
MANIFEST = "manifest.json"
REPORT = "report.html"
LOCK = "run.lock"
ARRAYS = "arrays"
ARRAY_SUFFIX = ".npy"
TABLE_SUFFIX = ".parquet"
# The run of some images in the directory of a large run.
SAMPLE = "sample"
# Unit rows of all images of a large run, in parts: what compares images, and what texts with them.
FEATURE_PARTS = ("looks", "meaning")

_ARRAY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


class DamagedRunError(InputError):
    """A file of a run that is missing, damaged, or not what a run has."""


def table_path(directory: Path, name: str) -> Path:
    """Return the path of a table."""
    return directory / f"{name}{TABLE_SUFFIX}"


def table_paths(directory: Path, name: str, n_parts: int = 0) -> list[Path]:
    """Return the paths of a table: one file, or the parts of a large one in a folder."""
    if not n_parts:
        return [table_path(directory, name)]
    return [directory / name / f"part-{part:05d}{TABLE_SUFFIX}" for part in range(n_parts)]


def feature_paths(directory: Path, name: str, n_parts: int) -> list[Path]:
    """Return the paths of the parts of all images' features."""
    return [directory / name / f"part-{part:05d}{ARRAY_SUFFIX}" for part in range(n_parts)]


def is_array_name(name: str) -> bool:
    """Return whether an array may have a name."""
    return _ARRAY_NAME.fullmatch(name) is not None


def array_path(directory: Path, name: str) -> Path:
    """Return the path of an array."""
    if not is_array_name(name):
        raise ValueError(
            f"{name!r} cannot be the name of an array: use a letter, then letters, digits and "
            "underscores."
        )
    return directory / ARRAYS / f"{name}{ARRAY_SUFFIX}"


def foreign_names(directory: Path) -> set[str]:
    """Return what a directory holds besides the leftovers of a killed writer."""
    names = {name for name in os.listdir(directory) if not name.endswith(NEW_SUFFIX)}
    arrays = directory / ARRAYS
    if arrays.is_dir() and all(name.endswith(NEW_SUFFIX) for name in os.listdir(arrays)):
        names.discard(ARRAYS)
    return names - {LOCK}


def explained(directory: Path) -> AbstractContextManager[None]:
    """Turn errors of the disk into an `OutputError` with a remedy."""
    return explained_writing("the run", directory, "choose another folder with `output`")


def damaged(path: Path, reason: str) -> DamagedRunError:
    """Return the error for a file of a finished run that cannot be read."""
    return DamagedRunError(
        f"{printable_path(path)} is missing or damaged ({' '.join(reason.split())}). Run the "
        "command that made the run again."
    )
