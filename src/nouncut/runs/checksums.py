"""Files of a run: opened without following links, and compared with their checksums.

A run directory may come from a stranger or from a failing disk. Only ordinary files in it are read,
and each is compared with the checksum in the manifest once per process.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import InputError, describe_error
from nouncut.runs.directory import damaged

# SHA-256 is twice as fast as BLAKE2 on processors that have instructions for it.
_BLOCK_BYTES = 16 * 2**20
DIGEST_CHARACTERS = 32
_MOST_REMEMBERED = 10_000

# Checksums of files that were read before, by what changes if a file does.
_known: dict[tuple[int, ...], str] = {}


@contextmanager
def open_inside(path: Path, directory: Path) -> Iterator[BinaryIO]:
    """Open an ordinary file of a run for reading; its problems become an `InputError`."""
    try:
        with os.fdopen(_open(path, directory), "rb") as file:
            yield file
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise damaged(path, describe_error(error)) from error


def _open(path: Path, directory: Path) -> int:
    check_no_link(path, directory)
    # Opening a pipe would block until somebody writes to it.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise damaged(path, "it is not an ordinary file")
    return descriptor


def check_no_link(path: Path, directory: Path) -> None:
    """Raise an `InputError` if a path below a directory leads through a link."""
    inside = directory
    for name in path.relative_to(directory).parts:
        inside /= name
        if is_link(inside):
            raise damaged(inside, "it is a link, and links in a run are not followed")


def is_link(path: Path) -> bool:
    """Return whether a path is a link, or a junction of Windows."""
    return path.is_symlink() or (hasattr(path, "is_junction") and path.is_junction())


def file_checksum(file: BinaryIO) -> str:
    """Return the checksum of an open file; it is read once per process."""
    key = file_version(file)
    if key not in _known:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        _known[key] = _checksum(file, os.fstat(file.fileno()).st_size)
    return _known[key]


def check_file(file: BinaryIO, path: Path, expected: str | None) -> None:
    """Raise an `InputError` unless a file has its checksum; runs of version 0.1.0 have none."""
    if expected is not None and file_checksum(file) != expected:
        raise damaged(path, "its checksum is not that of the manifest")


def file_version(file: BinaryIO) -> tuple[int, ...]:
    """Return what changes if a file is written."""
    state = os.fstat(file.fileno())
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def forget_checksums() -> None:
    """Read files again that were read before."""
    _known.clear()


def short_digest(content: bytes) -> str:
    """Return a hash as text."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _checksum(file: BinaryIO, size: int) -> str:
    """Return a hash of the hashes of blocks, so that threads can share the work."""
    starts = range(0, size, _BLOCK_BYTES)
    if not size:
        return short_digest(b"")
    with (
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):

        def digest(start: int) -> bytes:
            with content[start : start + _BLOCK_BYTES] as block:
                return hashlib.sha256(block).digest()

        # Counting threads takes an import that small files do without.
        n_threads = count_threads(-1) if len(starts) > 1 else 1
        return short_digest(b"".join(run_tasks(digest, starts, n_threads)))
