"""The files and folders that exports write: whole or not at all, and never over other files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nouncut.compute.files import atomic_file, explained_writing
from nouncut.errors import OutputError, printable_path
from nouncut.runs.checksums import is_link

_EXPORTS_FOLDER = "exports"


def check_export_file(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that is a folder, or a file that must not be overwritten."""
    if path.is_dir():
        raise OutputError(
            f"{printable_path(path)} is a folder. Choose the name of a file as `output`."
        )
    if os.path.lexists(path) and not overwrite:
        raise _exists_already(path)


@contextmanager
def export_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears at `path` once it is whole; its folders are made."""
    check_export_file(path, overwrite=overwrite)
    with explained_writing(printable_path(path.name), path.parent, "choose another `output`"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_file(path, replace=overwrite) as file:
                yield file
        except FileExistsError as error:
            raise _exists_already(path) from error


def _exists_already(path: Path) -> OutputError:
    return OutputError(
        f"{printable_path(path)} exists already. Choose another `output`, or pass "
        "`overwrite=True` to replace it."
    )


def make_export_folder(path: Path) -> None:
    """Make the folder that an export adds files to."""
    with explained_writing("the export", path, "choose another `output`"):
        path.mkdir(parents=True, exist_ok=True)


def default_destination(directory: Path, name: str) -> Path:
    """Return a path in the folder ``exports`` of a run; refuse one behind a link."""
    path = directory / _EXPORTS_FOLDER / name
    for part in (path.parent, path):
        if is_link(part):
            raise OutputError(
                f"{printable_path(part)} is a link, and nothing is written through links in a run. "
                "Remove the link, or choose an `output`."
            )
    return path


def make_folders(folder: Path, root: Path) -> None:
    """Make a folder and its parents below `root`, but never through a link that leads elsewhere."""
    path = root
    for name in folder.relative_to(root).parts:
        path /= name
        if path.is_symlink() or path.is_file():
            reason = f"{printable_path(path)} is a link or a file, not a folder"
            raise NotADirectoryError(errno.ENOTDIR, reason)
        path.mkdir(exist_ok=True)


def leads_through_link(path: Path, root: Path) -> bool:
    """Return whether a folder between `root` and a path below it is a link."""
    folders = [root / part for part in path.relative_to(root).parents]
    return any(is_link(folder) for folder in folders if folder != root)


def read_ordinary_file(path: Path, max_bytes: int) -> bytes:
    """Read a file that is not a link, a pipe or a device, and not too large."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if is_link(path):
        raise OSError(errno.ELOOP, "it is a link")
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes / 1e6:.0f} MB")
    return content
