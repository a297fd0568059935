"""Folders named after clusters, with the images in them: links or copies, never the files moved."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from nouncut.errors import OutputError, describe_error, printable_path
from nouncut.exports.names import DistinctNames, safe_name
from nouncut.exports.result import ExportResult, require_pictures
from nouncut.exports.writing import make_folders, part_of, put

if TYPE_CHECKING:
    from nouncut.runs.run import Run

Link = Literal["symlink", "hardlink", "copy"]
Plan = list[tuple[Path, Path]]

# File systems allow 255 bytes, some encrypted ones 143; Windows counts the whole path.
_FOLDER_BYTES, _FILE_BYTES = 80, 140
# A link that fails like this fails for all images: the drive, the system or the user lacks it.
_NO_LINKS_HERE = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_WINDOWS_PRIVILEGE_NOT_HELD = 1314


def plan_tree(run: Run, destination: Path) -> Plan:
    """Return which image goes where; nothing is read or written.

    Outliers stay in their cluster. Images of the same name get numbers: ``cat.jpg``,
    ``cat (2).jpg``. The plan depends on the run alone, so it is the same every time.
    """
    require_pictures(run, "tree")
    distinct = DistinctNames(_FOLDER_BYTES)
    folders = [
        distinct.name(safe_name(name, fallback=f"cluster {number}", max_bytes=_FOLDER_BYTES))
        for number, name in enumerate(run.names)
    ]
    files = [DistinctNames(_FILE_BYTES) for _ in folders]
    plan = []
    for path, cluster in zip(run.paths(), run.labels, strict=True):
        name = safe_name(path.name, fallback="image", max_bytes=_FILE_BYTES)
        plan.append((path, destination / folders[cluster] / files[cluster].name(name)))
    return plan


def export_tree(run: Run, destination: Path, *, link: Link = "symlink") -> ExportResult:
    """Make folders named after the clusters, with links to the images or copies of them.

    Nothing is moved, overwritten or deleted. A second export adds what is missing.
    """
    if link not in get_args(Link):
        raise OutputError(f"link must be one of {', '.join(get_args(Link))}; not {link!r}.")
    plan = plan_tree(run, destination)
    if link == "copy":
        _check_space(plan, destination)
    make_folder = cache(lambda folder: _folder_problem(folder, destination))
    n_written = n_kept = 0
    problems = []
    for source, target in plan:
        try:
            problem = make_folder(target.parent)
            if problem:
                problems.append(f"{printable_path(target)}: {problem}")
            elif _is_there(source, target):
                n_kept += 1
            else:
                _PLACERS[link](source, target)
                n_written += 1
        except OSError as error:
            _raise_if_hopeless(error, link, destination)
            problems.append(_problem(error, source, target))
    return ExportResult(destination, n_written, n_kept, problems)


def _folder_problem(folder: Path, destination: Path) -> str | None:
    try:
        make_folders(folder, destination)
    except OSError as error:
        return f"its folder cannot be used ({describe_error(error)})"
    return None


def _is_there(source: Path, target: Path) -> bool:
    """Return whether the target is the image; raise if the image is missing or another file."""
    if not stat.S_ISREG(source.stat().st_mode):
        raise OSError(errno.EINVAL, "not an ordinary file", str(source))
    if not os.path.lexists(target):
        return False
    if target.is_file() and (
        os.path.samefile(source, target) or filecmp.cmp(source, target, shallow=False)
    ):
        return True
    raise FileExistsError(errno.EEXIST, "another file is there", str(target))


def _copy(source: Path, target: Path) -> None:
    with part_of(target) as part:
        shutil.copy2(source, part)
        put(part, target)


_PLACERS: dict[str, Callable[[Path, Path], None]] = {
    "symlink": lambda source, target: target.symlink_to(source.absolute()),
    "hardlink": lambda source, target: os.link(source.resolve(), target),
    "copy": _copy,
}


def _check_space(plan: Plan, destination: Path) -> None:
    needed = sum(_size(source) for source, target in plan if not os.path.lexists(target))
    drive = destination.absolute()
    while not drive.exists():
        drive = drive.parent
    free = shutil.disk_usage(drive).free
    if needed > free:
        raise OutputError(
            f"The copies need {needed / 1e9:.2f} GB, and {printable_path(drive)} has "
            f"{free / 1e9:.2f} GB left. Use symbolic links, or choose another destination."
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _raise_if_hopeless(error: OSError, link: Link, destination: Path) -> None:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        raise OutputError(
            f"{printable_path(destination)} cannot be written to ({describe_error(error)}). Make room or "
            "choose another destination, then export again: what is there is kept."
        ) from error
    denied = getattr(error, "winerror", None) == _WINDOWS_PRIVILEGE_NOT_HELD
    if link != "copy" and (error.errno in _NO_LINKS_HERE or denied):
        other = "symlink" if link == "hardlink" else "hardlink"
        raise OutputError(
            f"No {link} can be made in {printable_path(destination)} ({describe_error(error)}). Use "
            f"{other} or copy instead."
        ) from error


def _problem(error: OSError, source: Path, target: Path) -> str:
    if isinstance(error, FileExistsError):
        return f"{printable_path(target)}: another file is there, and was left as it is"
    if isinstance(error, FileNotFoundError):
        return f"{printable_path(source)}: the image is not there any more"
    return f"{printable_path(source)}: {describe_error(error)}"
