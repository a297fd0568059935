"""The rows themselves: plain files of little-endian floats, one vector after the other."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import OutputError
from nouncut.store.entries import Space
from nouncut.store.errors import REMEDY

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
FOLDER = "shards"
# Small enough that removing a shard is removing something old, large enough for few files.
SHARD_BYTES = 64 * 2**20


def row_bytes(space: Space) -> int:
    """Return the size of a stored vector."""
    return space.dim * DTYPES[space.dtype].itemsize


def shard_path(root: Path, shard: int) -> Path:
    """Return where a shard's rows are."""
    return root / FOLDER / f"{shard:08d}.rows"


def encode_rows(rows: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return finite rows as they are stored."""
    with np.errstate(over="ignore"):
        encoded = np.ascontiguousarray(rows, dtype=DTYPES[dtype])
    if not np.isfinite(encoded).all():
        remedy = "Store this space as float32." if dtype == "float16" else "Rescale them."
        raise ValueError(
            f"The rows hold values up to {np.abs(rows).max():g}, too large for {dtype}. {remedy}"
        )
    return encoded


def checksums(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the CRC-32 of every row."""
    rows = np.ascontiguousarray(rows)
    return np.fromiter((zlib.crc32(row) for row in rows), dtype=np.int64, count=len(rows))


def write_rows(path: Path, first_byte: int, rows: NDArray[Any]) -> None:
    """Write rows at a place in a shard and wait until they are on the disk.

    Whatever the file holds from there on is replaced.
    """
    is_new = not path.exists()
    path.parent.mkdir(exist_ok=True)
    with path.open("xb" if is_new else "r+b", buffering=0) as file:
        try:
            file.truncate(first_byte)
            file.seek(first_byte)
            _write_all(file, rows)
            os.fsync(file.fileno())
        except OSError:
            # A full disk gets back what could not be used.
            with suppress(OSError):
                file.truncate(first_byte)
            raise
    if is_new:
        _sync_folder(path.parent)


def _write_all(file: Any, rows: NDArray[Any]) -> None:
    rest = rows.view(np.uint8).ravel().data
    while rest:
        rest = rest[file.write(rest) :]


def _sync_folder(folder: Path) -> None:
    """Make the names of new files outlive a power cut."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def map_rows(path: Path, space: Space, n_rows: int) -> NDArray[Any]:
    """Return a shard's first rows, mapped into memory."""
    n_rows = min(n_rows, path.stat().st_size // row_bytes(space))
    if n_rows == 0:
        return np.empty((0, space.dim), dtype=DTYPES[space.dtype])
    return np.memmap(path, dtype=DTYPES[space.dtype], mode="r", shape=(n_rows, space.dim))


def gather_rows(
    path: Path, space: Space, wanted: Sequence[int], expected: Sequence[int]
) -> NDArray[Any]:
    """Return some rows of a shard, after comparing their checksums."""
    mapped = map_rows(path, space, max(wanted) + 1)
    if len(mapped) <= max(wanted):
        raise OutputError(f"{path} is damaged. {REMEDY}")
    rows = np.asarray(mapped[np.asarray(wanted)])
    if not np.array_equal(checksums(rows), np.asarray(expected)):
        raise OutputError(f"{path} is damaged. {REMEDY}")
    return rows
