"""Writing files that are whole or not there, and never over what is there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nouncut.errors import OutputError, describe_error, printable_path


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a place to write a file, and put the file where it belongs once it is whole."""
    if path.is_dir():
        raise OutputError(f"{printable_path(path)} is a folder. Name a file in it.")
    if os.path.lexists(path) and not overwrite:
        raise OutputError(_in_the_way(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_of(path) as part:
            yield part
            put(part, path, overwrite=overwrite)
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise OutputError(_in_the_way(path)) from error
        raise OutputError(
            f"{printable_path(path)} cannot be written ({describe_error(error)}). Check the space and "
            "the permissions there, or choose another destination."
        ) from error


def _in_the_way(path: Path) -> str:
    return (
        f"{printable_path(path)} exists already. Choose another destination, or replace it with "
        "--overwrite (overwrite=True)."
    )


@contextmanager
def part_of(target: Path) -> Iterator[Path]:
    """Give a hidden name beside a file, for as long as the file is not whole.

    The name depends on the target's alone, so what a killed export left behind is replaced by
    the next one.
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=5).hexdigest()
    part = target.with_name(f".nouncut-{digest}.part")
    part.unlink(missing_ok=True)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def put(part: Path, target: Path, *, overwrite: bool = False) -> None:
    """Give a file its name in one step."""
    if overwrite:
        os.replace(part, target)
        return
    try:
        # Unlike a renaming, a link never takes the place of another file.
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:
        # Some drives, such as memory sticks, have no links.
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        os.rename(part, target)


def make_folders(folder: Path, root: Path) -> None:
    """Make a folder and those between it and a root, none of them through a link."""
    root.mkdir(parents=True, exist_ok=True)
    for part in [*reversed(folder.relative_to(root).parents), folder.relative_to(root)]:
        place = root / part
        if place == root:
            continue
        if place.is_symlink():
            raise NotADirectoryError(f"{printable_path(place)} is a link to another place")
        place.mkdir(exist_ok=True)
