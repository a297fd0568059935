"""Finding image files."""

from __future__ import annotations

import codecs
import glob
import json
import os
import re
import stat
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError, InputError, describe_error, printable_path
from nouncut.images.formats import PREFIX_BYTES, begins_like_an_image, reason_by_suffix
from nouncut.images.hashing import open_regular

_LIST_SUFFIXES = frozenset({".txt", ".lst"})
# Files that systems and file managers create; skipped without a message.
_JUNK = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", ".ds_store", "__macosx", "@eadir"})
_APPLE_DOUBLE = "._"
# A URL, of which `Path` keeps one slash, or a part of a tar or a table.
_ADDRESS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+")
_PART_OF_FILE = re.compile(r"\.(tar|tar\.gz|tgz|parquet)#", re.IGNORECASE)
_RUN_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder that is not used, and why; outside of file systems it has an address."""

    path: Path | str
    reason: str


@dataclass(frozen=True)
class ImageScan:
    """The image files that a scan found, and the files that it skipped."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...]


class _Candidate(NamedTuple):
    path: Path
    identity: object
    is_link: bool


@dataclass
class _Findings:
    """State of a scan: what is found, and which folders are still to be searched."""

    candidates: list[_Candidate] = field(default_factory=list)
    skipped: set[SkippedFile] = field(default_factory=set)
    folders: deque[Path] = field(default_factory=deque)
    linked_folders: deque[Path] = field(default_factory=deque)
    searched: dict[object, Path] = field(default_factory=dict)

    def skip(self, path: Path, reason: str) -> None:
        self.skipped.add(SkippedFile(path, reason))


def scan_images(paths: AnyPath | Iterable[AnyPath]) -> ImageScan:
    """Find image files.

    Folders are searched with all their subfolders, and links are followed. Every file is used
    once, even if several paths lead to it, and preferably under a path that is not a link. Every
    folder is searched once, so that circular links do no harm. Hidden files and folders are
    skipped unless `paths` names them; so are the run directories of nouncut.

    In folders, files are recognised by their suffix, and by their first bytes if they have none.
    Files that `paths` names are recognised by either.

    Parameters
    ----------
    paths : path or iterable of path
        Folders, image files, patterns (``"photos/**/*.jpg"``) and lists. A list is a text file
        ending in ``.txt`` or ``.lst`` with one folder, file or pattern per line, relative to the
        list. Lines that begin with ``#`` are comments.

    Returns
    -------
    ImageScan
        The files found and the files skipped with the reasons, both sorted by path.

    Raises
    ------
    InputError
        If one of `paths` does not exist, or if none of them leads to an image.

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
    # Links come last: a folder that has a path of its own is reported under it.
    while folders := found.folders or found.linked_folders:
        _add_contents(folders.popleft(), found)
    files = _without_repeats(found)
    skipped = sorted(found.skipped, key=lambda one: (os.fsencode(one.path), one.reason))
    if not files:
        raise InputError(_nothing_found(sources, skipped))
    return ImageScan(tuple(files), tuple(skipped))


def is_elsewhere(path: AnyPath) -> bool:
    """Return whether a path of a run is no file: a URL, or a part of a tar or a table."""
    text = os.fspath(path)
    return bool(_ADDRESS.match(text) or _PART_OF_FILE.search(text))


def address_text(path: AnyPath) -> str:
    """Return a path as text, a URL with both slashes that `Path` makes one of."""
    return _ADDRESS.sub(r"\1://", os.fspath(path))


def _add_source(source: Path, found: _Findings) -> None:
    if source.suffix.lower() in _LIST_SUFFIXES and source.is_file():
        for number, line in _list_lines(source):
            path = source.parent / line
            if not _add_named(path, found):
                name = printable_path(source.name)
                found.skip(path, f"line {number} of {name}: does not exist")
    elif not _add_named(source, found):
        raise InputError(_does_not_exist(source))


def _list_lines(source: Path) -> Iterator[tuple[int, str]]:
    try:
        with open_regular(source) as file:
            content = file.read()
    except ImageError as error:
        raise InputError(
            f"The list {error}. Change its permissions, or name its files instead."
        ) from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", "replace").encode()
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()
    for number, line in enumerate(lines, start=1):
        entry = os.fsdecode(line.strip())
        if entry and not entry.startswith("#"):
            yield number, entry


def _add_named(path: Path, found: _Findings) -> bool:
    """Add a folder, a file or the matches of a pattern; return whether there are any."""
    # A file whose own name looks like a pattern is meant literally.
    if os.path.lexists(path):
        _add(path, found, is_named=True)
        return True
    matches = sorted(glob.glob(os.fspath(path), recursive=True))
    for match in matches:
        _add(Path(match), found)
    return bool(matches)


def _does_not_exist(source: Path) -> str:
    shown = printable_path(source)
    if glob.has_magic(os.fspath(source)):
        return f"Nothing matches the pattern {shown}. Use ** to search subfolders."
    return (
        f"{shown} does not exist. Check the spelling, and whether the drive it is on is connected."
    )


def _add(path: Path, found: _Findings, is_named: bool = False) -> None:
    """Add a folder or file, or note why it is skipped."""
    if not is_named and is_junk(path.name):
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
        if not _is_run_directory(path):
            (found.linked_folders if is_link and not is_named else found.folders).append(path)
        elif is_named:
            found.skip(path, "a run of nouncut, not images")
    elif not stat.S_ISREG(status.st_mode):
        found.skip(path, "not an ordinary file")
    elif reason := _reason_to_skip(path, is_named):
        found.skip(path, reason)
    else:
        found.candidates.append(_Candidate(path, _identity(path, status), is_link))


def _add_contents(folder: Path, found: _Findings) -> None:
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


def is_junk(name: str) -> bool:
    """Return whether systems and file managers create files of this name."""
    return name.lower() in _JUNK or name.startswith(_APPLE_DOUBLE)


def _is_run_directory(folder: Path) -> bool:
    """Tell whether nouncut wrote a folder: thumbnails and exports are not the user's images."""
    try:
        manifest = json.loads((folder / _RUN_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and "nouncut" in manifest


def _identity(path: Path, status: os.stat_result) -> object:
    """Return a value that all paths to a file share."""
    # Some network drives have no inode numbers.
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)


def _reason_to_skip(path: Path, is_named: bool) -> str | None:
    suffix = path.suffix.lower()
    reason = reason_by_suffix(suffix)
    if reason and (is_named or not suffix) and _begins_like_an_image(path):
        return None
    return reason


def _begins_like_an_image(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return begins_like_an_image(path, file.read(PREFIX_BYTES))
    except ImageError:
        return False


def _without_repeats(found: _Findings) -> list[Path]:
    """Return one path per file, sorted; other paths to it are skipped."""
    first: dict[object, Path] = {}
    for path, identity, _ in sorted(
        found.candidates, key=lambda one: (one.is_link, os.fsencode(one.path))
    ):
        taken = first.setdefault(identity, path)
        if taken != path:
            found.skip(path, f"the same file as {printable_path(taken)}")
    return sorted(first.values(), key=os.fsencode)


def _nothing_found(sources: list[Path], skipped: list[SkippedFile]) -> str:
    searched = ", ".join(printable_path(source) for source in sources) or "an empty list of paths"
    seen = "; ".join(
        f"{count} x {reason}"
        for reason, count in Counter(one.reason for one in skipped).most_common(8)
    )
    return (
        f"No images found in {searched}. Seen: {seen or 'nothing at all'}. Pass a folder that "
        "holds images (.jpg, .heic, .png, ...) or subfolders with images."
    )
