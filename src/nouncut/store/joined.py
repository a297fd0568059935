"""Copies of the rows of a long list of keys, side by side in one file.

Every run reads the vocabulary. A file that is mapped into memory takes a tenth of the time of its
rows in the database, where they stay: a copy may be deleted at any time.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import atomic_file, remove_temporary
from nouncut.store.database import DTYPES

FOLDER = "joined"
_SUFFIX = ".f32"
# Copies of vocabularies that are no longer used take space for nothing.
_MOST_FILES = 3


def read_joined(root: Path, name: str, n_rows: int) -> NDArray[np.float32] | None:
    """Return the rows of a list, read-only; None if there is no intact copy of them."""
    for path in (root / FOLDER).glob(f"{name}-*{_SUFFIX}"):
        rows = _map_intact(path)
        if rows is not None and len(rows) == n_rows:
            return rows
        remove_joined([path])
    return None


def keep_joined(root: Path, name: str, rows: NDArray[Any]) -> None:
    """Keep a copy of the rows of a list, unless the folder cannot be written to."""
    rows = np.ascontiguousarray(rows, DTYPES["float32"])
    # The checksum belongs to the name, so that a file and its checksum appear in one step.
    file_name = f"{name}-{rows.shape[1]}-{zlib.crc32(rows.data):08x}{_SUFFIX}"
    with suppress(OSError):
        (root / FOLDER).mkdir(exist_ok=True)
        # Without waiting for the disk: what a power cut leaves does not match the checksum.
        with atomic_file(root / FOLDER / file_name, sync=False) as file:
            file.write(rows.data)
        remove_joined(sorted(joined_files(root), key=_used, reverse=True)[_MOST_FILES:])


def note_use(root: Path, name: str, resolution: float) -> bool:
    """Note that a list is used, unless that was noted a short time ago."""
    stale = [
        path
        for path in (root / FOLDER).glob(f"{name}-*{_SUFFIX}")
        if _used(path) < time.time() - resolution
    ]
    for path in stale:
        with suppress(OSError):
            os.utime(path)
    return bool(stale)


def joined_files(root: Path) -> list[Path]:
    """Return the files of all lists."""
    return sorted((root / FOLDER).glob(f"*{_SUFFIX}"))


def damaged_files(root: Path) -> list[Path]:
    """Return the files that do not match their checksums."""
    return [path for path in joined_files(root) if _map_intact(path) is None]


def remove_joined(paths: Iterable[Path]) -> None:
    """Delete files of lists, unless another program keeps them open."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def remove_all_joined(root: Path) -> None:
    """Delete the files of all lists, and what interrupted writers left."""
    remove_joined(joined_files(root))
    with suppress(OSError):
        remove_temporary(root / FOLDER)


def _map_intact(path: Path) -> NDArray[np.float32] | None:
    try:
        _, dim, checksum = path.name.removesuffix(_SUFFIX).split("-")
        data = np.memmap(path, DTYPES["float32"], mode="r")
        intact = zlib.crc32(data.data) == int(checksum, 16)
        return np.asarray(data.reshape(-1, int(dim))) if intact else None
    except (OSError, ValueError):
        return None


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
