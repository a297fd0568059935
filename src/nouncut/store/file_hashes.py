"""Hashes of files, kept so that unchanged files are not read again.

A file counts as unchanged while its size, its inode and its times stay the same, as in git's index.
Programs can set the time of modification back, but not the time of change (ctime). Windows has no
such time, so files are always read there.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from nouncut.store.database import has_code, split_keys

FILES_NAME = "files.sqlite"

# The coarsest times of a file system, FAT's, are two seconds apart: a file that was changed less
# than that ago may change again without a new time.
_SETTLED_SECONDS = 2.0
_PATIENCE_SECONDS = 1.0
# Codes of SQLite that tell nothing about the content of the file.
_DRIVE = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS checked_file (path BLOB PRIMARY KEY, size INTEGER,"
    " modified INTEGER, changed INTEGER, inode TEXT, device TEXT, hash TEXT, checksum INTEGER)"
    " WITHOUT ROWID"
)


class FileState(NamedTuple):
    """What changes whenever the content of a file changes."""

    size: int
    modified: int
    changed: int
    # As text: SQLite has no unsigned integers of 64 bits.
    inode: str
    device: str

    def is_settled(self, seen: float) -> bool:
        """Return whether any change after the time at which this state was seen would show."""
        return self.changed < (seen - _SETTLED_SECONDS) * 1e9


def file_state(path: Path) -> FileState | None:
    """Return the state of a file; None if it cannot be told."""
    if os.name == "nt":
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileState(
        found.st_size, found.st_mtime_ns, found.st_ctime_ns, str(found.st_ino), str(found.st_dev)
    )


def known_hashes(root: Path, states: Mapping[Path, FileState]) -> dict[Path, str]:
    """Return the kept hashes of the files that are still in the same state."""
    found: dict[Path, str] = {}
    if not states or not (root / FILES_NAME).exists():
        return found
    with _tolerated_errors(root), closing(_connect(root)) as db:
        paths = {os.fsencode(path): path for path in states}
        for part in split_keys(list(paths)):
            marks = ", ".join("?" * len(part))
            for name, *state, content, checksum in db.execute(
                "SELECT path, size, modified, changed, inode, device, hash, checksum"
                f" FROM checked_file WHERE path IN ({marks})",
                part,
            ):
                path, known = paths.get(name), FileState(*state)
                is_same = path is not None and known == states[path]
                if path and is_same and checksum == _checksum(name, known, content):
                    found[path] = content
    return found


def keep_hashes(root: Path, found: Mapping[Path, tuple[FileState, str]]) -> None:
    """Keep the hashes of files in their present states."""
    if not found:
        return
    rows = [
        (os.fsencode(path), *state, content, _checksum(os.fsencode(path), state, content))
        for path, (state, content) in found.items()
    ]
    with _tolerated_errors(root), closing(_connect(root)) as db, db:
        db.execute(_SCHEMA)
        db.executemany("INSERT OR REPLACE INTO checked_file VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _checksum(path: bytes, state: FileState, content: object) -> int:
    return zlib.crc32(repr((path, *state, content)).encode())


def forget_hashes(root: Path) -> None:
    """Delete all hashes; files are then read again."""
    with suppress(OSError):
        (root / FILES_NAME).unlink(missing_ok=True)


def _connect(root: Path) -> sqlite3.Connection:
    return sqlite3.connect(root / FILES_NAME, timeout=_PATIENCE_SECONDS)


@contextmanager
def _tolerated_errors(root: Path) -> Iterator[None]:
    """Go on without hashes if they cannot be read or written: it only takes longer."""
    try:
        yield
    except OSError:
        pass
    except sqlite3.Error as error:
        # Otherwise the drive is full or read-only, or another process is writing.
        if not has_code(error, *_DRIVE):
            forget_hashes(root)
