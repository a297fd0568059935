"""The folder of a report's thumbnails: nothing in it is trusted that could be something else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from PIL import Image

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import InputError, OutputError, printable_path
from nouncut.runs.checksums import is_link, open_inside

THUMBNAILS = "report-thumbnails"

_LEFT_BEHIND = ".new"
# Pixels that cannot be compressed take less.
_BYTES_PER_PIXEL, _BYTES_OF_HEADERS = 4, 4096
_HEADER_BYTES = 20


def make_folder(directory: Path, side: int) -> Path:
    """Make the folder for the thumbnails of one size, and refuse one that is a link."""
    folder = directory / THUMBNAILS
    for path in (folder, folder / str(side)):
        if is_link(path):
            raise OutputError(
                f"{printable_path(path)} is a link, and nothing is written through links in a "
                "run. Remove the link."
            )
        path.mkdir(exist_ok=True)
    return path


def folders_beside(directory: Path) -> list[Path]:
    """Return the thumbnails of other runs in the same folder: often runs of the same images."""
    found = directory.absolute().parent.glob(f"*/{THUMBNAILS}")
    others = (folder for folder in sorted(found) if folder.parent != directory.absolute())
    return [folder for folder in others if not is_link(folder)]


def link_known(wanted: set[str], sources: Iterable[Path], folder: Path) -> None:
    """Link the thumbnails that other folders have and this one lacks."""
    missing = wanted - file_names(folder)
    for source in sources:
        if not missing:
            return
        known = set() if is_link(source) else missing & file_names(source)
        for name in known:
            # Some drives have no links: the thumbnail is then made again.
            with suppress(OSError):
                os.link(source / name, folder / name, follow_symlinks=False)
        missing -= known


def remove_unusable(wanted: set[str], folder: Path, side: int, *, decode: bool) -> None:
    """Remove what has the name of a thumbnail but is none; it is then made again.

    `decode` also opens each, as must be done before one becomes part of the page.
    """
    files = file_names(folder)
    with suppress(OSError):
        for name in wanted & set(os.listdir(folder)) - files:
            (folder / name).unlink()
    if decode:
        known = sorted(wanted & files)
        are_usable = run_tasks(
            lambda name: is_thumbnail(folder / name, side), known, count_threads(-1)
        )
        for name, is_usable in zip(known, are_usable, strict=True):
            if not is_usable:
                (folder / name).unlink(missing_ok=True)


def is_thumbnail(path: Path, side: int) -> bool:
    """Return whether a file is a small WebP image and nothing else."""
    try:
        content = read_thumbnail(path, side)
        if content is None:
            return False
        with Image.open(BytesIO(content), formats=["WEBP"]) as image:
            image.load()
            return max(image.size) <= side
    except InputError:
        return False
    except Exception:  # damaged files make Pillow's readers raise anything
        return False


def read_thumbnail(path: Path, side: int) -> bytes | None:
    """Return a thumbnail; None if the file holds anything else. It is not decoded."""
    with open_inside(path, path.parent) as file:
        content = file.read(side * side * _BYTES_PER_PIXEL + _BYTES_OF_HEADERS)
        is_whole = not file.read(1)
    return content if is_whole and _is_one_image(content) else None


def _is_one_image(content: bytes) -> bool:
    """Return whether WebP bytes hold the chunk of one image alone, as thumbnails do."""
    sizes = (int.from_bytes(content[at : at + 4], "little") for at in (4, 16))
    inside, pixels = sizes
    return (
        content[:4] == b"RIFF"
        and content[8:16] in (b"WEBPVP8 ", b"WEBPVP8L")
        and inside + 8 == len(content)
        and pixels + pixels % 2 + _HEADER_BYTES == len(content)
    )


def remove_left_behind(directory: Path, before: int) -> None:
    """Remove what killed reports left half-written: files last changed `before` (nanoseconds).

    A thumbnail is written in much less time than a report, so no other process is still at it.
    """
    for folder in (directory / THUMBNAILS).glob("*"):
        if is_link(folder.parent) or is_link(folder) or not folder.is_dir():
            continue
        for path in folder.glob(f"*{_LEFT_BEHIND}"):
            with suppress(OSError):
                if path.lstat().st_mtime_ns < before:
                    path.unlink()


def file_names(folder: Path) -> set[str]:
    """Return the names of ordinary files in a folder."""
    try:
        return {entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)}
    except OSError:
        return set()
