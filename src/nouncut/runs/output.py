"""The directory of a run, and whether it already holds that run."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from nouncut import __version__
from nouncut.compute.file_names import safe_name
from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, OutputError, printable_path
from nouncut.runs.check import check_run
from nouncut.runs.directory import MANIFEST, explained, foreign_names
from nouncut.runs.image_set import ImageSet
from nouncut.runs.manifest import read_manifest
from nouncut.runs.run import Run, open_run
from nouncut.runs.sources import FeatureFile, Source
from nouncut.runs.tables import path_texts

FOLDER = "nouncut-runs"

_MAX_BYTES = 80


def output_directory(
    output: AnyPath | None, sources: Sequence[str], digest: str, *, replace: bool
) -> Path:
    """Return the run directory; refuse one that holds a run of other images or settings."""
    if output is None:
        return choose_output(Path(sources[0]).name, digest, Path.cwd())
    directory = Path(output)
    if (directory / MANIFEST).exists() and not replace and _digest(directory) != digest:
        raise OutputError(
            f"{printable_path(directory)} holds a run of other images or settings. Choose another "
            "`output`, or pass `replace=True`."
        )
    return directory


def choose_output(source_name: str, digest: str, parent: Path) -> Path:
    """Return the default directory: that of the same run, else a free one with the same name."""
    folder = parent / FOLDER
    name = safe_name(source_name.lstrip(". "), fallback="run", max_bytes=_MAX_BYTES)
    numbered = re.compile(re.escape(name) + r"(-\d+)?")
    with explained(folder):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if numbered.fullmatch(path.name) and _digest(path) == digest:
                return path
        paths = (folder / (name if number == 1 else f"{name}-{number}") for number in count(1))
        return next(path for path in paths if _is_free(path))


def content_digest(
    source: Source, images: ImageSet, fingerprints: Sequence[str], digest: str
) -> str:
    """Hash of everything that decides a result: version, settings, models and images."""
    found = hashlib.sha256(repr((__version__, digest, *fingerprints)).encode())
    for path in path_texts(images.paths):
        found.update(path.encode() + b"\0")
    for file in images.skipped:
        found.update(repr((path_texts([file.path]), file.reason)).encode())
    if isinstance(source, FeatureFile):
        found.update(source.features.data)
    found.update("".join(images.hashes or ()).encode())
    return found.hexdigest()


def earlier_run(directory: Path, content: str, n_encoded: int = 0) -> Run | None:
    """Return the finished run in a directory if it has the same content digest."""
    try:
        run = open_run(directory)
    except InputError:
        return None
    # A damaged run is made again.
    if run.manifest.get("content") != content or check_run(directory).problems:
        return None
    return replace(run, manifest=run.manifest | {"n_encoded": n_encoded})


def _is_free(path: Path) -> bool:
    return not os.path.lexists(path) or (path.is_dir() and not foreign_names(path))


def _digest(directory: Path) -> object:
    try:
        return read_manifest(directory).get("digest")
    except InputError:
        return None
