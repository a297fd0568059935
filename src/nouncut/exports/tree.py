"""A folder per cluster with links to its images, or copies of them; no image is moved."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from nouncut.compute.file_names import DistinctNames
from nouncut.compute.files import atomic_file, explained_writing
from nouncut.errors import (
    ImageError,
    OutputError,
    ParameterError,
    describe_error,
    printable_path,
)
from nouncut.exports.destination import make_export_folder, make_folders
from nouncut.exports.made_files import MadeFile, MadeFiles, read_made_files
from nouncut.exports.result import ExportResult
from nouncut.runs.originals import check_content, check_original

if TYPE_CHECKING:
    from nouncut.exports.part import Part
    from nouncut.runs.run import Run
    from nouncut.runs.tree import TreeNode

Link = Literal["symlink", "hardlink", "copy"]

_SET_ASIDE = "set aside"
# File systems allow 255 bytes, some encrypted ones 143; Windows limits the whole path.
_FOLDER_BYTES, _FILE_BYTES = 80, 140
# Errors that the next image would meet as well.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_LINK_ERRORS = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_WINDOWS_PRIVILEGE_NOT_HELD = 1314


@dataclass(frozen=True)
class Place:
    """An image, its path in the tree, and what the run says is in the file."""

    source: Path
    target: Path
    content: str | None


def plan_tree(run: Run, destination: Path, *, nested: bool = False) -> list[Place]:
    """Return the place of every image; the same run always gives the same places."""
    folder_names = DistinctNames(_FOLDER_BYTES)
    labels, names = run.labels, run.names_by_cluster
    folders = _nested_folders(run.tree, destination, folder_names) if nested else {}
    if -1 in labels:
        names[-1] = _SET_ASIDE
    for number, name in names.items():
        if number not in folders:
            place = folder_names.add(name, fallback=f"cluster {number}")
            folders[number] = destination / place
    file_names = {number: DistinctNames(_FILE_BYTES) for number in folders}
    images = zip(run.paths(), labels.tolist(), run.images["hash"].to_pylist(), strict=False)
    return [
        Place(
            path, folders[cluster] / file_names[cluster].add(path.name, fallback="image"), content
        )
        for path, cluster, content in images
    ]


def _nested_folders(tree: TreeNode, folder: Path, names: DistinctNames) -> dict[int, Path]:
    """Return the folder of every cluster within the folders of the groups that it is in."""
    found: dict[int, Path] = {}
    for child in tree.children:
        place = folder / names.add(child.name, fallback=f"cluster {child.clusters[0]}")
        if child.children:
            found |= _nested_folders(child, place, DistinctNames(_FOLDER_BYTES))
        else:
            found[child.clusters[0]] = place
    return found


def export_tree(
    part: Part,
    destination: Path,
    *,
    link: Link = "symlink",
    nested: bool = False,
    preview: bool = False,
) -> ExportResult:
    """Make the tree what it should be; only what an earlier export made is ever removed."""
    if link not in get_args(Link):
        raise ParameterError(f"`link` must be one of {', '.join(get_args(Link))}, not {link!r}.")
    _check_folder(destination)
    problems: list[str] = []
    with explained_writing("the images", destination, "choose another `output`"):
        made = read_made_files(destination, "tree", problems)
    every = plan_tree(part.run, destination, nested=nested)
    chosen = [every[row] for row in part.rows]
    stale = _stale(made, every, chosen, link)
    gone = {destination / name for name in stale if made.is_ours(name)}
    new = [p for p in chosen if p.target in gone or not os.path.lexists(p.target)]
    if preview:
        files = [place.target for place in new]
        n_kept = len(chosen) - len(new)
        return ExportResult(
            destination, len(new), n_kept, problems, "", files, len(gone), is_preview=True
        )
    if link == "copy":
        _check_space(new, destination)
    make_export_folder(destination)
    with explained_writing("the images", destination, "choose another `output`"):
        n_removed = made.remove(stale, problems)
        made.remove_empty_folders([made.inside(place.target) for place in chosen], problems)
        # Before the first link, so that an export that is interrupted knows its own files.
        made.claim({made.inside(place.target): _made(place, link) for place in new})
        made.write()
        files, n_kept = _fill(part.run, chosen, made, link, problems)
        made.write()
    return ExportResult(destination, len(files), n_kept, problems, "", files, n_removed)


def _check_folder(destination: Path) -> None:
    if os.path.lexists(destination) and not destination.is_dir():
        raise OutputError(f"{printable_path(destination)} is a file. Choose a folder as `output`.")


def _stale(made: MadeFiles, every: list[Place], chosen: list[Place], link: Link) -> list[str]:
    """Return the files of earlier exports that are not, or not like this, in the tree.

    Files of other runs stay, as long as their images exist.
    """
    right = {made.inside(place.target): _made(place, link) for place in every}
    asked = {made.inside(place.target) for place in chosen}
    ours = {str(place.source.absolute()) for place in every}

    def is_right(name: str, file: MadeFile) -> bool:
        if file.source not in ours:
            return os.path.exists(file.source or "")
        known = file if name in asked else replace(file, kind=link)
        return right.get(name) == known

    return [name for name, file in made.files.items() if not is_right(name, file)]


def _made(place: Place, link: Link) -> MadeFile:
    return MadeFile(link, str(place.source.absolute()), place.content)


def _fill(
    run: Run, places: list[Place], made: MadeFiles, link: Link, problems: list[str]
) -> tuple[list[Path], int]:
    """Add the images that are missing; return the new files, and the number of the others."""
    sources = run.manifest.get("source") or []
    make_folder = cache(partial(make_folders, root=made.root))
    files, n_kept = [], 0
    for place in places:
        try:
            make_folder(place.target.parent)
            if _is_there(place.source, place.target):
                n_kept += 1
                continue
            check_original(place.source, sources)
            _add(place.source, place.target, link, place.content)
            files.append(place.target)
            continue
        except ImageError as error:
            problems.append(str(error))
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise
            problems.append(_problem(error, place.source, place.target))
        made.files.pop(made.inside(place.target), None)
    return files, n_kept


def _is_there(source: Path, target: Path) -> bool:
    """Return whether the target is the image; raise if it is another file, or without the image."""
    if not stat.S_ISREG(source.stat().st_mode):
        raise OSError(errno.EINVAL, "not an ordinary file", str(source))
    if not os.path.lexists(target):
        return False
    if target.is_file() and (
        os.path.samefile(source, target) or filecmp.cmp(source, target, shallow=False)
    ):
        return True
    raise FileExistsError(errno.EEXIST, "another file is there", str(target))


def _add(source: Path, target: Path, link: Link, content: str | None) -> None:
    try:
        _ADDERS[link](source, target, content)
    except OSError as error:
        is_denied = getattr(error, "winerror", None) == _WINDOWS_PRIVILEGE_NOT_HELD
        if link != "copy" and (error.errno in _LINK_ERRORS or is_denied):
            other = "symlink" if link == "hardlink" else "hardlink"
            raise OutputError(
                f"No {link} can be made in {printable_path(target.parent)} "
                f"({describe_error(error)}). Set `link` to {other} or copy."
            ) from error
        raise


def _symlink(source: Path, target: Path, content: str | None) -> None:
    target.symlink_to(source.absolute())


def _hardlink(source: Path, target: Path, content: str | None) -> None:
    os.link(source.resolve(), target)


def _copy(source: Path, target: Path, content: str | None) -> None:
    with atomic_file(target, replace=False, sync=False) as file:
        # By name: it also copies the times and permissions.
        shutil.copy2(source, file.name)
        check_content(file.name, source, content)


_ADDERS: dict[Link, Callable[[Path, Path, str | None], None]] = {
    "symlink": _symlink,
    "hardlink": _hardlink,
    "copy": _copy,
}


def _check_space(new: list[Place], destination: Path) -> None:
    needed = sum(_size(place.source) for place in new)
    folder = destination.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OutputError(
            f"The copies need {needed / 1e9:.2f} GB, and {printable_path(folder)} has "
            f"{free / 1e9:.2f} GB left. Set `link` to symlink, or choose another `output`."
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _problem(error: OSError, source: Path, target: Path) -> str:
    if isinstance(error, FileExistsError):
        return f"{printable_path(target)}: kept, since it is another file"
    if isinstance(error, FileNotFoundError):
        return f"{printable_path(source)}: the image no longer exists"
    return f"{printable_path(source)}: {describe_error(error)}"
