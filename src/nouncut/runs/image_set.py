"""The image files of a run, identified by their content."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, InputError, printable_path
from nouncut.images.find import ImageScan, SkippedFile
from nouncut.images.hashing import image_hash
from nouncut.store.file_hashes import FileState, file_state, keep_hashes, known_hashes
from nouncut.store.store import FeatureStore

_FILES_AT_ONCE = 128
# Every write waits for the disk.
_KEPT_AT_ONCE = 2048


@dataclass(frozen=True)
class ImageSet:
    """Images in the order of their features; hashes identify their contents."""

    paths: tuple[str | Path, ...]
    hashes: tuple[str, ...] | None = field(repr=False)
    skipped: tuple[SkippedFile, ...]


def hash_images(
    scan: ImageScan,
    store: FeatureStore,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> ImageSet:
    """Hash the contents of image files; those that cannot be read or are no images are skipped.

    The store keeps the hashes, so that files are read again only if they have changed.
    """
    seen = time.time()
    states = {path: state for path in scan.files if (state := file_state(path))}
    hashes = known_hashes(store.root, states)
    unread = [path for path in scan.files if path not in hashes]
    unreadable: list[SkippedFile] = []

    def read(path: Path) -> tuple[FileState, str] | None:
        try:
            hashes[path] = image_hash(path)
        except ImageError as error:
            unreadable.append(SkippedFile(path, error.reason))
            return None
        state = states.get(path)
        is_kept = state is not None and state.is_settled(seen) and state == file_state(path)
        return (state, hashes[path]) if state and is_kept else None

    report = progress or silent
    new: dict[Path, tuple[FileState, str]] = {}
    for start in range(0, len(unread), _FILES_AT_ONCE):
        part = unread[start : start + _FILES_AT_ONCE]
        found = zip(part, run_tasks(read, part, count_threads(n_jobs)), strict=True)
        new |= {path: known for path, known in found if known}
        if len(new) >= _KEPT_AT_ONCE or start + len(part) == len(unread):
            keep_hashes(store.root, new)
            new = {}
        report("reading files", start + len(part), len(unread))
    paths = tuple(path for path in scan.files if path in hashes)
    unreadable.sort(key=lambda file: str(file.path))
    check_any_opens(len(scan.files), unreadable)
    skipped = (*scan.skipped, *unreadable)
    return ImageSet(paths, tuple(hashes[path] for path in paths), skipped)


def check_any_opens(n_files: int, broken: Sequence[SkippedFile]) -> None:
    """Raise if all image files are broken."""
    if n_files == len(broken):
        raise InputError(
            f"None of {n_files:,} image files can be opened; the first, "
            f"{printable_path(broken[0].path)}: {broken[0].reason}."
        )
