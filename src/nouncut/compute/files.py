"""Atomic writing of files, and messages for disk errors.

A file is first written beside its final path, under a name that ends in `NEW_SUFFIX`; `install`
then renames it in one step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import NouncutError, OutputError, describe_error, printable_path

AnyPath = str | os.PathLike[str]

NEW_SUFFIX = ".nouncut-new"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR}
_BYTES_AT_ONCE = 16 * 2**20


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends without an error."""
    waiting(path).unlink(missing_ok=True)
    try:
        with new_file(path) as file:
            yield file
        install(path)
    except BaseException:
        with suppress(OSError):
            waiting(path).unlink(missing_ok=True)
        raise


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for `path` and sync it to disk at the end; `install` renames it."""
    with waiting(path).open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def waiting(path: Path) -> Path:
    """Return the temporary path that `new_file` writes to."""
    return path.with_name(path.name + NEW_SUFFIX)


def install(path: Path) -> None:
    """Rename the temporary file to `path`, replacing any file there."""
    os.replace(waiting(path), path)


def remove_waiting(folder: Path) -> None:
    """Remove temporary files that an interrupted writer left behind."""
    for path in folder.glob(f"*{NEW_SUFFIX}"):
        with suppress(FileNotFoundError):
            path.unlink()


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file as `new_file` does, in pieces: the array may be memory-mapped."""
    if array.dtype.hasobject:
        raise ValueError(f"{path.stem!r} holds Python objects, and arrays are never pickled.")
    flat = np.asarray(array, order="C").reshape(-1)
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    step = max(1, _BYTES_AT_ONCE // max(1, array.itemsize))
    with new_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        # np.save hides the errno of a full disk.
        for start in range(0, len(flat), step):
            file.write(flat[start : start + step].tobytes())


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def explained_writing(what: str, path: AnyPath, instead: str) -> Iterator[None]:
    """Turn an OSError into an `OutputError` that says what to do."""
    try:
        yield
    except NouncutError:
        raise
    except OSError as error:
        raise OutputError(_explanation(error, what, printable_path(path), instead)) from error


def _explanation(error: OSError, what: str, path: str, instead: str) -> str:
    words = describe_error(error)
    if error.errno in FULL:
        return f"No room left for {what} in {path} ({words}). Free some space, or {instead}."
    if error.errno in FORBIDDEN:
        return f"{path} cannot be written to ({words}). Change its permissions, or {instead}."
    if error.errno in _IN_THE_WAY:
        return f"{path} cannot be used: a file is in the way ({words}). Remove it, or {instead}."
    return f"{path} cannot be used ({words}). Check the drive, or {instead}."
