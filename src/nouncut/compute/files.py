"""The cache folder, atomic writing of files, and messages for disk errors.

A file is first written beside its final path, under a name that ends in `NEW_SUFFIX`; `commit_file`
then renames it in one step.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import platformdirs

from nouncut.errors import NouncutError, OutputError, describe_error, printable_path

AnyPath = str | os.PathLike[str]

NEW_SUFFIX = ".nouncut-new"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR}
_MAX_NAME_BYTES = 255


def cache_folder() -> Path:
    """Return the folder for what can be computed again: `NOUNCUT_CACHE`, or the user's cache."""
    chosen = os.environ.get("NOUNCUT_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("nouncut")


@contextmanager
def atomic_file(path: Path, *, replace: bool = True, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that becomes `path` when the block ends without an error.

    With `replace=False`, a file that exists by then is kept, and FileExistsError raised. With
    `sync=False`, many small files are fast, but a power cut may leave some of them empty.
    """
    temporary_path(path).unlink(missing_ok=True)
    try:
        with new_file(path, sync=sync) as file:
            yield file
        commit_file(path, replace=replace)
    except BaseException:
        with suppress(OSError):
            temporary_path(path).unlink(missing_ok=True)
        raise


@contextmanager
def new_file(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a new file beside `path` and sync it to disk at the end; `commit_file` renames it."""
    with temporary_path(path).open("xb") as file:
        yield file
        if sync:
            file.flush()
            os.fsync(file.fileno())


def temporary_path(path: Path) -> Path:
    """Return the temporary path that `new_file` writes to, different in every process."""
    suffix = f".{os.getpid()}{NEW_SUFFIX}"
    name = path.name + suffix
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = hashlib.blake2b(os.fsencode(path.name), digest_size=16).hexdigest() + suffix
    return path.with_name(name)


def commit_file(path: Path, *, replace: bool = True) -> None:
    """Rename the temporary file to `path`; replace a file there, or raise FileExistsError."""
    if replace:
        os.replace(temporary_path(path), path)
        return
    try:
        # Unlike a renaming, a link never replaces a file.
        os.link(temporary_path(path), path)
    except FileExistsError:
        raise
    except OSError:
        # Some drives, such as memory sticks, have no links.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary_path(path), path)
    else:
        temporary_path(path).unlink()


def remove_temporary(folder: Path) -> None:
    """Remove temporary files that an interrupted writer left behind."""
    for path in folder.glob(f"*{NEW_SUFFIX}"):
        with suppress(FileNotFoundError):
            path.unlink()


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
        return (
            f"No room left for {what} in {path} ({words}). What was there before is intact. Free "
            f"some space, or {instead}."
        )
    if error.errno in FORBIDDEN:
        return f"{path} cannot be written to ({words}). Change its permissions, or {instead}."
    if error.errno in _IN_THE_WAY:
        return f"{path} cannot be used: a file is in the way ({words}). Remove it, or {instead}."
    return f"{path} cannot be used ({words}). Check the drive, or {instead}."
