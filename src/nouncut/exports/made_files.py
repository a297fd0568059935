"""The list of files that an export has made in a folder.

With it, the next export to the folder can remove what is no longer right. A file counts as ours
only if it is in the list and is still what we made; everything else in the folder is the user's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from nouncut.compute.files import atomic_file
from nouncut.errors import ImageError, describe_error, printable_path
from nouncut.exports.destination import leads_through_link, read_ordinary_file
from nouncut.images.hashing import content_hash
from nouncut.runs.checksums import is_link

Kind = Literal["symlink", "hardlink", "copy", "file"]

_FORMAT = 1
# A million files take about 250 MB.
_MAX_BYTES = 1_000_000_000


@dataclass(frozen=True)
class MadeFile:
    """A file that an export made: a link to `source`, a copy of it, or a file of its own."""

    kind: Kind
    source: str | None = None
    content: str | None = None


@dataclass
class MadeFiles:
    """The files and folders that an export has made below a folder, by their paths in it."""

    root: Path
    export: str
    files: dict[str, MadeFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def inside(self, path: Path) -> str:
        """Return the path of a file as the list has it."""
        return path.relative_to(self.root).as_posix()

    def claim(self, files: Mapping[str, MadeFile]) -> None:
        """Add files, and the folders that they need and that are not there yet."""
        self.files |= files
        for folder in {parent for name in files for parent in _parents(name)}:
            self.claim_folder(folder)

    def claim_folder(self, name: str) -> None:
        """Add a folder, unless it is there already."""
        if not os.path.lexists(self.root / name):
            self.folders.add(name)

    def is_ours(self, name: str) -> bool:
        """Return whether a file is in the list and is still what was made."""
        path, made = self.root / name, self.files.get(name)
        if made is None or leads_through_link(path, self.root):
            return False
        try:
            return _is_unchanged(path, made)
        except (OSError, ImageError):
            return False

    def remove(self, names: Iterable[str], problems: list[str]) -> int:
        """Remove files of ours and return their number; files that were changed are kept."""
        n_removed = 0
        for name in names:
            path = self.root / name
            if self.is_ours(name):
                path.unlink()
                n_removed += 1
            elif os.path.lexists(path):
                problems.append(
                    f"{printable_path(path)}: kept, since it was changed or its image is gone"
                )
            del self.files[name]
        return n_removed

    def remove_empty_folders(self, wanted: Iterable[str], problems: list[str]) -> None:
        """Remove folders of ours that hold nothing; name those that hold only other files."""
        used = {parent for name in (*self.files, *wanted) for parent in _parents(name)}
        for name in sorted(self.folders, key=len, reverse=True):
            path = self.root / name
            if leads_through_link(path / "x", self.root) or not path.is_dir():
                self.folders.discard(name)
            elif not os.listdir(path):
                path.rmdir()
                self.folders.discard(name)
            elif name not in used:
                problems.append(f"{printable_path(path)}: kept, since other files are in it")

    def write(self) -> None:
        """Write the list into the folder."""
        content = {
            "format": _FORMAT,
            "files": {name: asdict(made) for name, made in sorted(self.files.items())},
            "folders": sorted(self.folders),
        }
        with atomic_file(list_file(self.root, self.export)) as file:
            file.write(json.dumps(content, indent=0).encode())


def list_file(root: Path, export: str) -> Path:
    """Return the path of the list that an export keeps in a folder."""
    return root / f".nouncut-{export}.json"


def read_made_files(root: Path, export: str, problems: list[str]) -> MadeFiles:
    """Read the list of a folder; an empty one if there is none, or none that can be trusted."""
    path = list_file(root, export)
    made = MadeFiles(root, export)
    if not os.path.lexists(path):
        return made
    try:
        _fill(made, json.loads(read_ordinary_file(path, _MAX_BYTES)))
        return made
    except OSError as error:
        reason = describe_error(error)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        reason = "it is damaged"
    problems.append(
        f"{printable_path(path)}: {reason}, so files of earlier exports stay where they are"
    )
    return MadeFiles(root, export)


def _fill(made: MadeFiles, content: Any) -> None:
    if content["format"] != _FORMAT:
        raise ValueError
    made.files = {_checked_name(name): _checked_file(f) for name, f in content["files"].items()}
    made.folders = {_checked_name(name) for name in content["folders"]}


def _checked_name(name: Any) -> str:
    path = PurePosixPath(name)
    is_inside = not path.is_absolute() and ".." not in path.parts and str(path) == name != "."
    # Drives and backslashes would lead elsewhere on Windows.
    if not is_inside or "\0" in name or (os.name == "nt" and (":" in name or "\\" in name)):
        raise ValueError(name)
    return str(name)


def _checked_file(made: Any) -> MadeFile:
    file = MadeFile(**made)
    texts = (file.source, file.content)
    if file.kind not in get_args(Kind) or not all(isinstance(t, str | None) for t in texts):
        raise ValueError(made)
    return file


def _is_unchanged(path: Path, made: MadeFile) -> bool:
    if made.kind == "symlink":
        return path.is_symlink() and os.readlink(path) == made.source
    if is_link(path):
        return False
    if made.kind == "file":
        return content_hash(path) == made.content
    # The last copy of a photo is nothing that an export may remove.
    if made.source is None or not os.path.isfile(made.source):
        return False
    if made.kind == "hardlink":
        is_other = os.path.realpath(made.source) != os.path.realpath(path)
        return is_other and os.path.samefile(made.source, path)
    return not os.path.samefile(made.source, path) and content_hash(path) == made.content


def _parents(name: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(name).parents][:-1]
