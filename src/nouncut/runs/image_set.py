"""The image files of a run, identified by their content."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError
from nouncut.images.find import ImageScan, SkippedFile
from nouncut.images.hashing import content_hash
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
    """Hash the contents of image files; those that cannot be read are skipped.

    The store keeps the hashes, so that files are read again only if they have changed.
    """
    seen = time.time()
    states = {path: state for path in scan.files if (state := file_state(path))}
    hashes = known_hashes(store.root, states)
    unread = [path for path in scan.files if path not in hashes]
    unreadable: list[SkippedFile] = []

    def read(path: Path) -> tuple[FileState, str] | None:
        try:
            hashes[path] = content_hash(path)
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
    skipped = (*scan.skipped, *sorted(unreadable, key=lambda file: str(file.path)))
    return ImageSet(paths, tuple(hashes[path] for path in paths), skipped)
