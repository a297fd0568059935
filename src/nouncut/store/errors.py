"""What can go wrong with the store, in words for the user."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nouncut.errors import OutputError

REMEDY = (
    "Run `nouncut cache check --repair`, or FeatureStore.repair() in Python: what was lost is then "
    "computed again."
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def explained(root: Path) -> Iterator[None]:
    """Turn errors of the disk and of the index into a `OutputError` that tells what to do."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise OutputError(_explanation(error, root)) from error


def _explanation(error: OSError | sqlite3.Error, root: Path) -> str:
    name = getattr(error, "sqlite_errorname", "")
    number = error.errno if isinstance(error, OSError) else None
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if number in _FULL or name.startswith("SQLITE_FULL"):
        return (
            f"No room left for features in {root} ({words}). What was stored earlier is intact. "
            "Free some space, or set NOUNCUT_CACHE to a folder on a larger drive."
        )
    if number in _FORBIDDEN or name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return (
            f"The feature store {root} cannot be opened or written to ({words}). Change its "
            "permissions, or set NOUNCUT_CACHE to a folder of your own."
        )
    if number == errno.ENOENT:
        return (
            f"The feature store {root} has lost a file ({getattr(error, 'filename', words)}). "
            f"{REMEDY}"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"Another process has kept the feature store {root} locked ({words}). Wait for it to "
            "end, or set NOUNCUT_CACHE to another folder."
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return (
            f"The index of the feature store {root} is damaged ({words}). Delete the folder: all "
            "that is in it will be computed again."
        )
    return (
        f"The feature store {root} cannot be used ({words}). Check the drive, or set "
        "NOUNCUT_CACHE to another folder."
    )
