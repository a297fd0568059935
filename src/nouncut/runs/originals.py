"""The image files that a run names.

A run may come from a stranger, and name any file of this machine. Nothing of a file is shown or
copied unless its content is what the run has recorded.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.formats import PREFIX_BYTES
from nouncut.images.hashing import check_prefix, content_hash, open_regular
from nouncut.images.open import open_image

_LISTS = (".txt", ".lst")


def open_original(path: Path, content: str | None, min_side: int) -> Image.Image:
    """Open an image of a run, unless its content has changed."""
    check_content(path, path, content)
    return open_image(path, min_side=min_side)


def check_content(file: str | os.PathLike[str], path: Path, content: str | None) -> None:
    """Raise an `ImageError` about `path` unless a file has the content that was recorded."""
    if content is None:
        raise ImageError(path, "refused, since the run does not say what is in the file")
    if content_hash(file) != content:
        raise ImageError(path, "refused, since the file has changed since the run")


def check_original(path: Path, sources: Sequence[str]) -> None:
    """Raise an `ImageError` unless a path lies in the sources of a run and leads to an image."""
    if not _is_inside(path, sources):
        raise ImageError(path, "refused, since it is not in the folders that the run was made from")
    with open_regular(path) as file:
        check_prefix(path, file.read(PREFIX_BYTES))


def _is_inside(path: Path, sources: Sequence[str]) -> bool:
    # Links within a source may lead anywhere, so it is the names that count.
    place = os.path.normcase(os.path.abspath(path))
    for source in sources:
        # The files that a list names may be anywhere.
        if source.lower().endswith(_LISTS):
            return True
        folder = os.path.normcase(os.path.abspath(_before_wildcards(source)))
        if place == folder or place.startswith(os.path.join(folder, "")):
            return True
    return False


def _before_wildcards(source: str) -> str:
    """Return the part of a pattern that names a folder; other sources as they are."""
    if os.path.lexists(source) or not glob.has_magic(source):
        return source
    while glob.has_magic(source):
        source = os.path.dirname(source)
    return source
