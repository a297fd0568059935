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
    """Give a place to write a file, and put the file where it belongs once it is whole.

    Parameters
    ----------
    path : Path
        Where the file belongs; missing folders are made.
    overwrite : bool, default=False
        Whether it may take the place of a file that is there.

    Yields
    ------
    Path
        A file of another name in the same folder, not there yet. It is removed if the block
        fails.

    Raises
    ------
    OutputError
        If there is a file already, or the disk refuses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.exports.writing import new_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "new", "numbers.txt")
    ...     with new_file(path) as part:
    ...         _ = part.write_text("1 2 3")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('1 2 3', 1)
    """
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

    Parameters
    ----------
    target : Path
        The file that will be there.

    Yields
    ------
    Path
        The hidden file, not there yet. It is removed in the end.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.exports.writing import part_of
    >>> with part_of(Path("cats.csv")) as part:
    ...     print(part)
    .nouncut-4714102e58.part
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=5).hexdigest()
    part = target.with_name(f".nouncut-{digest}.part")
    part.unlink(missing_ok=True)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def put(part: Path, target: Path, *, overwrite: bool = False) -> None:
    """Give a file its name in one step.

    Parameters
    ----------
    part : Path
        The file.
    target : Path
        Its new name, in the same folder.
    overwrite : bool, default=False
        Whether it may take the place of another file.

    Raises
    ------
    FileExistsError
        If there is something at `target` and `overwrite` is false.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.exports.writing import put
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     part, target = Path(folder, "part"), Path(folder, "whole")
    ...     _ = part.write_text("text")
    ...     put(part, target)
    ...     target.read_text()
    'text'
    """
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
    """Make a folder and those between it and a root, none of them through a link.

    Parameters
    ----------
    folder : Path
        The folder; `root` itself or below it.
    root : Path
        A folder that may be missing, and may be a link.

    Raises
    ------
    OSError
        If there is a link or a file in the way, or the disk refuses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.exports.writing import make_folders
    >>> with tempfile.TemporaryDirectory() as root:
    ...     make_folders(Path(root, "pets", "cats"), Path(root))
    ...     Path(root, "pets", "cats").is_dir()
    True
    """
    root.mkdir(parents=True, exist_ok=True)
    for part in [*reversed(folder.relative_to(root).parents), folder.relative_to(root)]:
        place = root / part
        if place == root:
            continue
        if place.is_symlink():
            raise NotADirectoryError(f"{printable_path(place)} is a link to another place")
        place.mkdir(exist_ok=True)
