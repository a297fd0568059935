"""What lies where in a run directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

FORMAT = 1
MANIFEST = "manifest.json"
REPORT = "report.html"
LOCK = "run.lock"
ARRAYS = "arrays"
ARRAY_SUFFIX = ".npy"
TABLE_SUFFIX = ".parquet"
# Ends the names of files that are written but not yet in their place. Leftovers are deleted, so it
# must be an ending that no file of the user's has.
NEW_SUFFIX = ".nouncut-new"

_ARRAY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def table_path(directory: Path, name: str) -> Path:
    """Return where a table lies."""
    return directory / f"{name}{TABLE_SUFFIX}"


def array_path(directory: Path, name: str) -> Path:
    """Return where an array lies."""
    if not _ARRAY_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of an array: use a letter, then letters, digits and "
            "underscores."
        )
    return directory / ARRAYS / f"{name}{ARRAY_SUFFIX}"


def foreign_names(directory: Path) -> set[str]:
    """Return what a directory without a manifest holds besides leftovers of a killed writer."""
    names = {name for name in os.listdir(directory) if not name.endswith(NEW_SUFFIX)}
    arrays = directory / ARRAYS
    if arrays.is_dir() and all(name.endswith(NEW_SUFFIX) for name in os.listdir(arrays)):
        names.discard(ARRAYS)
    return names - {LOCK}
