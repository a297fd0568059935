"""A folder per cluster with links to its images, or copies of them; no image is moved."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from collections.abc import Callable
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
from nouncut.exports.result import ExportResult, require_image_files
from nouncut.runs.originals import check_content, check_original

if TYPE_CHECKING:
    from nouncut.runs.run import Run
    from nouncut.runs.tree import TreeNode

Link = Literal["symlink", "hardlink", "copy"]
Plan = list[tuple[Path, Path]]

_SET_ASIDE = "set aside"
# File systems allow 255 bytes, some encrypted ones 143; Windows limits the whole path.
_FOLDER_BYTES, _FILE_BYTES = 80, 140
# Errors that the next image would meet as well.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_LINK_ERRORS = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_WINDOWS_PRIVILEGE_NOT_HELD = 1314


def plan_tree(run: Run, destination: Path, *, nested: bool = False) -> Plan:
    """Return each image and its path in the tree; the same run always gives the same plan."""
    require_image_files(run, "tree")
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
    return [
        (path, folders[cluster] / file_names[cluster].add(path.name, fallback="image"))
        for path, cluster in zip(run.paths(), labels.tolist(), strict=True)
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
    run: Run, destination: Path, *, link: Link = "symlink", nested: bool = False
) -> ExportResult:
    """Add the images that are missing in the tree; nothing is moved, overwritten or deleted."""
    if link not in get_args(Link):
        raise ParameterError(f"`link` must be one of {', '.join(get_args(Link))}, not {link!r}.")
    plan = plan_tree(run, destination, nested=nested)
    sources, contents = run.manifest.get("source") or [], run.images["hash"].to_pylist()
    if link == "copy":
        _check_space(plan, destination)
    make_export_folder(destination)
    make_folder = cache(partial(make_folders, root=destination))
    n_written = n_kept = 0
    problems = []
    with explained_writing("the images", destination, "choose another `output`"):
        for (source, target), content in zip(plan, contents, strict=False):
            try:
                make_folder(target.parent)
                if _is_there(source, target):
                    n_kept += 1
                else:
                    check_original(source, sources)
                    _add(source, target, link, content)
                    n_written += 1
            except ImageError as error:
                problems.append(str(error))
            except OSError as error:
                if error.errno in _DISK_ERRORS:
                    raise
                problems.append(_problem(error, source, target))
    return ExportResult(destination, n_written, n_kept, problems)


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


def _check_space(plan: Plan, destination: Path) -> None:
    needed = sum(_size(source) for source, target in plan if not os.path.lexists(target))
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
