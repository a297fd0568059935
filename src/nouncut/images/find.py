"""Finding image files."""

from __future__ import annotations

import codecs
import glob
import json
import os
import stat
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nouncut.errors import ImageError, InputError, describe_error, printable_path
from nouncut.images.files import open_regular
from nouncut.images.formats import HEIC_SUFFIXES, PREFIX_BYTES, image_suffixes, matching_readers

LIST_SUFFIXES = frozenset({".txt", ".lst"})
# What file managers leave behind; nobody wants to hear of it.
_JUNK = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", ".ds_store", "__macosx", "@eadir"})
_APPLE_DOUBLE = "._"
_RUN_MANIFEST = "manifest.json"

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder that was seen but not taken."""

    path: Path
    reason: str


@dataclass(frozen=True)
class ImageScan:
    """What a scan found."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...]


class _Candidate(NamedTuple):
    path: Path
    identity: object
    is_link: bool


@dataclass
class _Findings:
    """What a scan has come across so far."""

    candidates: list[_Candidate] = field(default_factory=list)
    skipped: set[SkippedFile] = field(default_factory=set)
    folders: deque[Path] = field(default_factory=deque)
    linked_folders: deque[Path] = field(default_factory=deque)
    searched: dict[object, Path] = field(default_factory=dict)

    def skip(self, path: Path, reason: str) -> None:
        self.skipped.add(SkippedFile(path, reason))


def scan_images(paths: AnyPath | Iterable[AnyPath]) -> ImageScan:
    """Find image files.

    Folders are searched with all their subfolders, through links as well. A file that can be
    reached in several ways is taken once, under its own path rather than a link's, and a
    folder is searched once, so links in a circle do no harm. Hidden files and folders are left
    out, except where they are named in `paths`; so are the folders of nouncut's own runs.

    In folders, files are chosen by their suffix (see `image_suffixes`), and by their first bytes
    where they have none. Files that are named one by one are chosen by either.

    Parameters
    ----------
    paths : path or iterable of path
        Folders, image files, patterns (``"photos/**/*.jpg"``) and lists: text files ending in
        ``.txt`` or ``.lst`` with one folder, file or pattern per line, relative to the list. Lines
        that begin with ``#`` are comments.

    Returns
    -------
    ImageScan
        The files, and what was not taken with the reasons. The order does not depend on the
        file system, nor on the order of `paths`.

    Raises
    ------
    FileNotFoundError
        If one of `paths` does not exist.
    InputError
        If there is no image in any of them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.images.find import scan_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.jpg", "a.png", "notes.doc"):
    ...         _ = Path(folder, name).write_bytes(b"...")
    ...     scan = scan_images(folder)
    >>> [path.name for path in scan.files]
    ['a.png', 'b.jpg']
    >>> [(skipped.path.name, skipped.reason) for skipped in scan.skipped]
    [('notes.doc', 'not an image (.doc)')]
    """
    sources = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(p) for p in paths]
    found = _Findings()
    for source in sources:
        _add_source(source, found)
    # Links come last, so that a folder is known by its own path where there is one.
    while folders := found.folders or found.linked_folders:
        _add_content(folders.popleft(), found)
    files = _each_once(found)
    skipped = sorted(found.skipped, key=lambda one: (os.fsencode(one.path), one.reason))
    if not files:
        raise InputError(_nothing_found(sources, skipped))
    return ImageScan(tuple(files), tuple(skipped))


def _add_source(source: Path, found: _Findings) -> None:
    """Add what the user named."""
    if source.suffix.lower() in LIST_SUFFIXES and source.is_file():
        for number, line in _list_lines(source):
            try:
                _add_named(source.parent / line, found)
            except FileNotFoundError:
                name = printable_path(source.name)
                found.skip(source.parent / line, f"line {number} of {name}: does not exist")
    else:
        _add_named(source, found)


def _list_lines(source: Path) -> Iterator[tuple[int, str]]:
    try:
        with open_regular(source) as file:
            content = file.read()
    except ImageError as error:
        raise OSError(f"The list {error}.") from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", "replace").encode()
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()
    for number, line in enumerate(lines, start=1):
        entry = os.fsdecode(line.strip())
        if entry and not entry.startswith("#"):
            yield number, entry


def _add_named(path: Path, found: _Findings) -> None:
    """Add a folder, a file or a pattern."""
    if os.path.lexists(path):
        _add(path, found, is_named=True)
        return
    if not glob.has_magic(os.fspath(path)):
        raise FileNotFoundError(
            f"{printable_path(path)} does not exist. Check the spelling, and whether the drive "
            "it is on is connected."
        )
    matches = sorted(glob.glob(os.fspath(path), recursive=True))
    if not matches:
        raise FileNotFoundError(
            f"Nothing matches the pattern {printable_path(path)}. Use ** to search subfolders."
        )
    for match in matches:
        _add(Path(match), found)


def _add(path: Path, found: _Findings, is_named: bool = False) -> None:
    """Add a folder or file, or note why not."""
    if not is_named and _is_junk(path.name):
        return
    if not is_named and path.name.startswith("."):
        found.skip(path, "hidden")
        return
    try:
        is_link = path.is_symlink()
        status = path.stat()
    except OSError as error:
        found.skip(path, f"cannot be read ({describe_error(error)})")
        return
    if stat.S_ISDIR(status.st_mode):
        if _holds_run(path):
            if is_named:
                found.skip(path, "a run of nouncut, not images")
            return
        (found.linked_folders if is_link and not is_named else found.folders).append(path)
    elif not stat.S_ISREG(status.st_mode):
        found.skip(path, "not an ordinary file")
    elif reason := _why_not_an_image(path, is_named):
        found.skip(path, reason)
    else:
        found.candidates.append(_Candidate(path, _identity(path, status), is_link))


def _add_content(folder: Path, found: _Findings) -> None:
    """Add all that a folder holds."""
    try:
        first = found.searched.setdefault(_identity(folder, folder.stat()), folder)
        names = sorted(os.listdir(folder))
    except OSError as error:
        found.skip(folder, f"the folder cannot be read ({describe_error(error)})")
        return
    if first != folder:
        found.skip(folder, f"the same folder as {printable_path(first)}")
        return
    for name in names:
        _add(folder / name, found)


def _is_junk(name: str) -> bool:
    return name.lower() in _JUNK or name.startswith(_APPLE_DOUBLE)


def _holds_run(folder: Path) -> bool:
    """Tell whether nouncut wrote a folder: its thumbnails and exports are not the user's images."""
    try:
        manifest = json.loads((folder / _RUN_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and "nouncut" in manifest


def _identity(path: Path, status: os.stat_result) -> object:
    """Return what is the same for all paths to a file; some network drives number no files."""
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)


def _why_not_an_image(path: Path, is_named: bool) -> str | None:
    suffix = path.suffix.lower()
    if suffix in image_suffixes():
        return None
    if (is_named or not suffix) and _begins_like_an_image(path):
        return None
    if suffix in HEIC_SUFFIXES:
        return "HEIC images need a plug-in: pip install pillow-heif"
    return f"not an image ({printable_path(suffix)})" if suffix else "not an image"


def _begins_like_an_image(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return bool(matching_readers(file.read(PREFIX_BYTES)))
    except (ImageError, OSError):
        return False


def _each_once(found: _Findings) -> list[Path]:
    first: dict[object, Path] = {}
    for path, identity, _ in sorted(
        found.candidates, key=lambda one: (one.is_link, os.fsencode(one.path))
    ):
        taken = first.setdefault(identity, path)
        if taken != path:
            found.skip(path, f"the same file as {printable_path(taken)}")
    return sorted(first.values(), key=os.fsencode)


def _nothing_found(sources: list[Path], skipped: list[SkippedFile]) -> str:
    places = ", ".join(printable_path(source) for source in sources) or "an empty list of paths"
    seen = "; ".join(
        f"{count} x {reason}"
        for reason, count in Counter(one.reason for one in skipped).most_common(8)
    )
    return (
        f"No images found in {places}. Seen: {seen or 'nothing at all'}. Pass a folder that holds "
        f"images ({', '.join(sorted({'.jpg', '.png', '.webp', '.tiff'} & image_suffixes()))}, ...) "
        "or subfolders with images."
    )
