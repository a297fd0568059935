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
    """Return the size of a stored vector.

    Parameters
    ----------
    space : Space
        The vector's space.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from nouncut.store.entries import Space
    >>> from nouncut.store.shards import row_bytes
    >>> row_bytes(Space(1, "clip", "float16", dim=512))
    1024
    """
    return space.dim * DTYPES[space.dtype].itemsize


def shard_path(root: Path, shard: int) -> Path:
    """Return where a shard's rows are.

    Parameters
    ----------
    root : Path
        The store's folder.
    shard : int
        The shard's number.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.store.shards import shard_path
    >>> shard_path(Path("cache"), 7).as_posix()
    'cache/shards/00000007.rows'
    """
    return root / FOLDER / f"{shard:08d}.rows"


def encode_rows(rows: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return finite rows as they are stored.

    Parameters
    ----------
    rows : ndarray of shape (n, dim)
        Finite vectors.
    dtype : {"float32", "float16"}
        How to store them.

    Returns
    -------
    ndarray of shape (n, dim)
        The same, rounded.

    Raises
    ------
    ValueError
        If a value is too large for the type.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.store.shards import encode_rows
    >>> encode_rows(np.array([[1e5]]), "float16")
    Traceback (most recent call last):
    ...
    ValueError: The rows hold values up to 100000, too large for float16. Store this space as
    float32.
    """
    with np.errstate(over="ignore"):
        encoded = np.ascontiguousarray(rows, dtype=DTYPES[dtype])
    if not np.isfinite(encoded).all():
        remedy = "Store this space as float32." if dtype == "float16" else "Rescale them."
        raise ValueError(
            f"The rows hold values up to {np.abs(rows).max():g}, too large for {dtype}. {remedy}"
        )
    return encoded


def checksums(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the CRC-32 of every row.

    Parameters
    ----------
    rows : ndarray of shape (n, dim)
        Rows as stored.

    Returns
    -------
    ndarray of shape (n,)
        Checksums.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.store.shards import checksums
    >>> checksums(np.zeros((2, 1), dtype="<f4"))
    array([558161692, 558161692])
    """
    rows = np.ascontiguousarray(rows)
    return np.fromiter((zlib.crc32(row) for row in rows), dtype=np.int64, count=len(rows))


def write_rows(path: Path, first_byte: int, rows: NDArray[Any]) -> None:
    """Write rows at a place in a shard and wait until they are on the disk.

    Whatever the file holds from there on is replaced.

    Parameters
    ----------
    path : Path
        The shard's file; made where it is missing.
    first_byte : int
        Where the rows begin.
    rows : ndarray
        Encoded rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut.store.shards import write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "shards", "00000001.rows")
    ...     write_rows(path, 0, np.zeros((2, 3), dtype="<f4"))
    ...     write_rows(path, 12, np.zeros((4, 3), dtype="<f4"))
    ...     path.stat().st_size
    60
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
    """Return a shard's first rows, mapped into memory.

    Parameters
    ----------
    path : Path
        The shard's file.
    space : Space
        The space of its rows.
    n_rows : int
        How many rows are wanted.

    Returns
    -------
    ndarray of shape (n_rows, dim)
        Read-only. Fewer rows where the file ends earlier.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut.store.entries import Space
    >>> from nouncut.store.shards import map_rows, write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "shards", "00000001.rows")
    ...     write_rows(path, 0, np.ones((4, 3), dtype="<f4"))
    ...     map_rows(path, Space(1, "clip", "float32", 3), n_rows=2).shape
    (2, 3)
    """
    n_rows = min(n_rows, path.stat().st_size // row_bytes(space))
    if n_rows == 0:
        return np.empty((0, space.dim), dtype=DTYPES[space.dtype])
    return np.memmap(path, dtype=DTYPES[space.dtype], mode="r", shape=(n_rows, space.dim))


def gather_rows(
    path: Path, space: Space, wanted: Sequence[int], expected: Sequence[int]
) -> NDArray[Any]:
    """Return some rows of a shard, after comparing their checksums.

    Parameters
    ----------
    path : Path
        The shard's file.
    space : Space
        The space of its rows.
    wanted : sequence of int
        The rows.
    expected : sequence of int
        Their checksums.

    Returns
    -------
    ndarray of shape (n, dim)
        A copy.

    Raises
    ------
    OutputError
        If the rows are not what was once written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut.store.entries import Space
    >>> from nouncut.store.shards import checksums, gather_rows, write_rows
    >>> rows = np.array([[1.0], [2.0], [3.0]], dtype="<f4")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "shards", "00000001.rows")
    ...     write_rows(path, 0, rows)
    ...     gather_rows(path, Space(1, "clip", "float32", 1), [2, 0], checksums(rows)[[2, 0]])
    array([[3.],
           [1.]], dtype=float32)
    """
    mapped = map_rows(path, space, max(wanted) + 1)
    if len(mapped) <= max(wanted):
        raise OutputError(f"{path} is damaged. {REMEDY}")
    rows = np.asarray(mapped[np.asarray(wanted)])
    if not np.array_equal(checksums(rows), np.asarray(expected)):
        raise OutputError(f"{path} is damaged. {REMEDY}")
    return rows
