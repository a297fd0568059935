"""What happened to the files of a run since it was made."""

from __future__ import annotations

import glob
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError, printable_path
from nouncut.images.find import ImageScan, scan_images
from nouncut.runs.run import Run
from nouncut.runs.tables import path_texts

# Parts of the reasons why a folder of images could not be searched.
_NOT_SEARCHED = ("cannot be read", "does not exist")


@dataclass(frozen=True)
class FileChanges:
    """Files of a run matched with files that are there now; images are the same by content.

    `kept` are the rows of the run whose images are still there, `files` their numbers among the
    files now, `new` the numbers of all other files, `gone` all other rows. A changed file is a row
    that is gone and a new file of the same path.
    """

    kept: NDArray[np.intp]
    files: NDArray[np.intp]
    new: NDArray[np.intp]
    gone: NDArray[np.intp]
    n_renamed: int
    # Those of `new` whose paths the run has with another content.
    changed: NDArray[np.intp]

    def without(self, broken: NDArray[np.intp]) -> FileChanges:
        """Return the changes without new files that cannot be opened."""
        new, changed = (np.setdiff1d(numbers, broken) for numbers in (self.new, self.changed))
        return replace(self, new=new, changed=changed)

    @property
    def is_nothing(self) -> bool:
        """Whether all files are as they were."""
        return not (len(self.new) or len(self.gone) or self.n_renamed)


def match_files(
    old_ids: Sequence[str], old_paths: Sequence[str], ids: Sequence[str], paths: Sequence[str]
) -> FileChanges:
    """Match images by their contents; of several copies those with the same path first."""
    same = {key: number for number, key in enumerate(zip(ids, paths, strict=True))}
    found = [same.pop(key, -1) for key in zip(old_ids, old_paths, strict=True)]
    left: dict[str, list[int]] = defaultdict(list)
    for (image, _), number in same.items():
        left[image].append(number)
    n_renamed = 0
    for row, number in enumerate(found):
        if number < 0 and left[old_ids[row]]:
            found[row] = left[old_ids[row]].pop(0)
            n_renamed += 1
    files = np.array(found, dtype=np.intp)
    kept, gone = np.flatnonzero(files >= 0), np.flatnonzero(files < 0)
    new = np.setdiff1d(np.arange(len(ids)), files[kept])
    left_paths = {old_paths[row] for row in gone.tolist()}
    changed = [number for number in new.tolist() if paths[number] in left_paths]
    return FileChanges(kept, files[kept], new, gone, n_renamed, np.array(changed, dtype=np.intp))


def scan_again(run: Run, sources: Sequence[str], *, allow_missing: bool = False) -> ImageScan:
    """Look at the sources of a run again.

    A folder that is missing, empty or unreadable is probably on a drive that is not there, and
    must not end the groups of its images.
    """
    there = [source for source in sources if is_there(source)]
    scan = scan_images(there if allow_missing and there else sources)
    if not allow_missing:
        _check_sources(run, sources, scan)
    return scan


def is_there(source: str) -> bool:
    """Return whether a source exists, or is a pattern that something matches."""
    if os.path.lexists(source):
        return True
    return next(glob.iglob(source, recursive=True), None) is not None


def _check_sources(run: Run, sources: Sequence[str], scan: ImageScan) -> None:
    before = path_texts(run.images["path"].slice(0, len(run.labels)).to_pylist())
    now = path_texts(scan.files)
    unread = [
        str(file.path)
        for file in scan.skipped
        if any(part in file.reason for part in _NOT_SEARCHED)
    ]
    for folder in (*sources, *unread):
        n_images = _count_below(folder, before)
        if n_images and not _count_below(folder, now):
            raise InputError(
                f"{printable_path(folder)} held {n_images:,} images of the run, and no image is "
                "found there now. Check whether its drive is connected. If the images are really "
                "gone, pass `allow_missing=True`."
            )


def _count_below(folder: str, paths: Sequence[str]) -> int:
    begin = os.path.join(path_texts([Path(folder)])[0], "")
    return sum(path.startswith(begin) for path in paths)
