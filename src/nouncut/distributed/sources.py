"""Files of a source, found by fsspec in the order of their paths: folders and object stores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import fsspec
from fsspec.implementations.local import LocalFileSystem

from nouncut.distributed.storage import Options
from nouncut.errors import InputError, NouncutError, describe_error, printable_path
from nouncut.images.find import is_junk
from nouncut.images.formats import reason_by_suffix

LIST_SUFFIXES = (".txt", ".lst")
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_RUN_MANIFEST = "manifest.json"
_JUNK = "junk"
# The manifest of a run has some kilobytes.
_MOST_MANIFEST_BYTES = 10_000_000
# Object stores tell versions by a tag, folders by the time of the last change.
_VERSIONS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified")


class SourceFile(NamedTuple):
    """A file of a source; `kind` is "image", "tar", "parquet", "npy" or "" if it is skipped."""

    path: str
    kind: str
    size: int = 0
    # Changes with the content; empty if the storage does not tell.
    version: str = ""
    reason: str = ""


def file_system(url: str, options: Options) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it."""
    if "://" not in url:
        return LocalFileSystem(), os.path.abspath(url)
    system, path = fsspec.core.url_to_fs(url, **options)
    return system, path


def is_local(system: Any) -> bool:
    """Return whether a file system is that of the machine."""
    return isinstance(system, LocalFileSystem)


def walk_files(source: str, options: Options, after: str = "") -> Iterator[SourceFile]:
    """Yield the files of a folder, a prefix, a pattern or one file, ordered by their paths.

    Names with the same beginning are listed one folder at a time, so that memory grows with the
    largest folder and not with the source. Files up to the path `after` are left out.
    """
    with explained_access(source):
        system, path = file_system(source, options)
        system.invalidate_cache()
        roots = _roots(system, path, source)
        last = os.fsencode(file_system(after, options)[1]) if after else b""
        is_named = len(roots) == 1
        stack, searched = [(info, is_named) for info in reversed(roots)], set[object]()
        while stack:
            info, is_named = stack.pop()
            position = _position(info)
            if position <= last and not last.startswith(position):
                continue
            if reason := _reason_to_pass_by(info, is_named):
                if reason != _JUNK:
                    yield _describe(system, info, reason)
            elif info["type"] != "directory":
                if position > last:
                    yield _describe(system, info)
            else:
                try:
                    inside = _contents(system, info["name"], searched)
                except PermissionError as error:
                    if is_named:
                        raise
                    reason = f"the folder cannot be read ({describe_error(error)})"
                    yield _describe(system, info, reason)
                else:
                    stack += [(one, False) for one in reversed(inside)]


def check_sources(sources: Sequence[str], options: Options | None = None) -> None:
    """Raise an `InputError` if a source does not exist or cannot be read."""
    for source in sources:
        next(walk_files(source, options or {}), None)


def read_lists(sources: Sequence[str], options: Options) -> list[str]:
    """Replace text files, which list sources line by line, by what they list."""
    found = []
    for source in sources:
        if not source.lower().endswith(LIST_SUFFIXES):
            found.append(source)
            continue
        with explained_access(source):
            system, path = file_system(source, options)
            lines = system.cat_file(path).decode("utf-8-sig", "surrogateescape").splitlines()
        folder = source.rpartition("/")[0]
        for line in (line.strip() for line in lines):
            if line and not line.startswith("#"):
                is_whole = "://" in line or line.startswith("/")
                found.append(line if is_whole else f"{folder}/{line}")
    return found


@contextmanager
def explained_access(source: str) -> Iterator[None]:
    """Turn errors of listing a source into an `InputError` that says what to do."""
    shown = printable_path(source)
    try:
        yield
    except NouncutError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{shown} does not exist. Check the spelling.") from error
    except PermissionError as error:
        raise InputError(
            f"{shown}: access was refused ({describe_error(error)}). Check the credentials, here "
            "and on the workers."
        ) from error
    except ImportError as error:
        raise InputError(f"{shown} needs another package: {describe_error(error)}.") from error
    except Exception as error:  # every kind of storage has its own errors
        raise InputError(
            f"{shown} cannot be listed ({describe_error(error)}). Check the address, and whether "
            "the storage can be reached."
        ) from error


def _roots(system: Any, path: str, source: str) -> list[dict[str, Any]]:
    """Return a folder, a file, or all that match a pattern."""
    try:
        return [system.info(path)]
    except FileNotFoundError:
        if not fsspec.core.has_magic(path):
            raise
    found = system.glob(path, detail=True)
    if not found:
        raise InputError(
            f"Nothing matches the pattern {printable_path(source)}. Use ** to search subfolders."
        )
    return [found[name] for name in sorted(found, key=os.fsencode)]


def _contents(system: Any, folder: str, searched: set[object]) -> list[dict[str, Any]]:
    """Return what is in a folder, in the order in which a list of all paths would have it."""
    if is_local(system):
        # Links may lead in circles.
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        if identity in searched:
            return []
        searched.add(identity)
    found = [info for info in system.ls(folder, detail=True) if info["name"] != folder]
    # Kept listings would add up to the whole source.
    system.invalidate_cache(folder)
    if any(_is_run_manifest(system, info) for info in found):
        return []
    if is_local(system):
        found = [system.info(info["name"]) if _is_link(info) else info for info in found]
    return sorted(found, key=_position)


def _is_link(info: dict[str, Any]) -> bool:
    """Return whether a link leads somewhere."""
    return bool(info.get("islink")) and os.path.exists(info["name"])


def _position(info: dict[str, Any]) -> bytes:
    return os.fsencode(info["name"]) + (b"/" if info["type"] == "directory" else b"")


def _is_run_manifest(system: Any, info: dict[str, Any]) -> bool:
    """Tell whether nouncut wrote a folder: thumbnails and exports are not the user's images."""
    name = info["name"].rpartition("/")[2]
    if name != _RUN_MANIFEST or (info["size"] or 0) > _MOST_MANIFEST_BYTES:
        return False
    try:
        manifest = json.loads(system.cat_file(info["name"]))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and "nouncut" in manifest


def _reason_to_pass_by(info: dict[str, Any], is_named: bool) -> str:
    name = info["name"].rpartition("/")[2]
    if is_named:
        return ""
    # Object stores have empty objects that stand for folders.
    if not name or is_junk(name):
        return _JUNK
    return "hidden" if name.startswith(".") else ""


def _describe(system: Any, info: dict[str, Any], reason: str = "") -> SourceFile:
    """Tell what kind of file it is, and why it is skipped if it is."""
    path = info["name"] if is_local(system) else system.unstrip_protocol(info["name"])
    if reason:
        return SourceFile(path, "", reason=reason)
    if info["type"] != "file":
        return SourceFile(path, "", reason="not an ordinary file")
    kind, reason = _kind(info["name"].rpartition("/")[2])
    version = next((str(info[key]) for key in _VERSIONS if info.get(key)), "")
    return SourceFile(path, kind, int(info.get("size") or 0), version, reason)


def _kind(name: str) -> tuple[str, str]:
    lower = name.lower()
    if lower.endswith(TAR_SUFFIXES):
        return "tar", ""
    if lower.endswith(".parquet"):
        return "parquet", ""
    if lower.endswith(".npy"):
        return "npy", ""
    reason = reason_by_suffix(os.path.splitext(lower)[1])
    # Files without a suffix may be images; whoever reads them sees their first bytes.
    is_open = reason is None or "." not in name
    return ("image", "") if is_open else ("", reason or "")
