"""Thumbnails: a cache of WebP files named by content, and single ones as JPEG bytes."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO
from uuid import uuid4

from PIL import Image

from nouncut.compute.progress import Progress
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError
from nouncut.images.find import is_elsewhere
from nouncut.images.hashing import content_hash
from nouncut.images.open import open_image

_WEBP_QUALITY = 72
# From 0 (fast) to 6 (small): a third of the default's time for 3 % more bytes.
_WEBP_METHOD = 2
_JPEG_QUALITY = 80
_IMAGES_PER_REPORT = 64
_HASH = re.compile("[0-9a-f]{16,128}")


@dataclass(frozen=True)
class Original:
    """An image file and the hash of its content."""

    path: Path
    content: str | None


@dataclass(frozen=True)
class Thumbnail:
    """The file of a thumbnail, or the reason why there is none."""

    file: Path | None
    problem: str = ""

    def data_uri(self) -> str | None:
        """Return the thumbnail as a ``data:`` address."""
        if self.file is None:
            return None
        return f"data:image/webp;base64,{b64encode(self.file.read_bytes()).decode('ascii')}"


def make_thumbnails(
    originals: Mapping[int, Original],
    folder: Path,
    side: int,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> dict[int, Thumbnail]:
    """Make upright thumbnails that fit a square; those already in the folder are used again."""
    folder = folder / str(side)
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[int, Thumbnail] = {}

    def make(number: int) -> None:
        made[number] = _thumbnail(originals[number], folder, side)

    numbers = list(originals)
    for start in range(0, len(numbers), _IMAGES_PER_REPORT):
        stop = min(start + _IMAGES_PER_REPORT, len(numbers))
        run_tasks(make, numbers[start:stop], count_threads(n_jobs))
        if progress is not None:
            progress("making thumbnails", stop, len(numbers))
    return made


def encode_thumbnail(picture: Image.Image, side: int) -> bytes:
    """Shrink a picture to fit a square, in place, and return it as JPEG."""
    picture.thumbnail((side, side))
    file = BytesIO()
    picture.save(file, "JPEG", quality=_JPEG_QUALITY)
    return file.getvalue()


def _thumbnail(original: Original, folder: Path, side: int) -> Thumbnail:
    # Runs may come from strangers: a forged hash must not lead out of the folder.
    if original.content is None or not _HASH.fullmatch(original.content):
        return Thumbnail(None, "no picture is known")
    file = folder / f"{original.content}.webp"
    if file.exists():
        return Thumbnail(file)
    if is_elsewhere(original.path):
        return _from_another(file, side)
    try:
        picture = _shrunk(original, side)
    except ImageError as error:
        return Thumbnail(None, error.reason)
    _write_webp(picture, file)
    return Thumbnail(file)


def thumbnail_bytes(original: Original, side: int) -> bytes:
    """Return a thumbnail as WebP without keeping it; raise an `ImageError` if there is none."""
    return webp_thumbnail(_shrunk(original, side), side)


def _shrunk(original: Original, side: int) -> Image.Image:
    """Return the upright picture within a square, if the file still holds what it held."""
    try:
        if content_hash(original.path) != original.content:
            raise ImageError(original.path, "the file has changed since the run")
        picture = open_image(original.path, min_side=side)
    except ImageError as error:
        if os.path.exists(original.path):
            raise
        raise ImageError(original.path, "the file is gone") from error
    picture.thumbnail((side, side))
    return picture


def webp_thumbnail(picture: Image.Image, side: int) -> bytes:
    """Shrink a picture to fit a square, in place, and return it as WebP."""
    picture.thumbnail((side, side))
    content = BytesIO()
    _save_webp(picture, content)
    return content.getvalue()


def _from_another(file: Path, side: int) -> Thumbnail:
    """Make a thumbnail from the largest one of another size: the image itself is not here."""
    others = file.parent.parent.glob(f"*/{file.name}")
    sizes = [path for path in others if path.parent.name.isdecimal()]
    if not sizes:
        return Thumbnail(None, "the image is in a tar, a table or an object store")
    try:
        picture = open_image(max(sizes, key=lambda path: int(path.parent.name)))
    except ImageError as error:
        return Thumbnail(None, error.reason)
    picture.thumbnail((side, side))
    _write_webp(picture, file)
    return Thumbnail(file)


def _write_webp(picture: Image.Image, file: Path) -> None:
    # Threads and other processes may write the same thumbnail at once, so every writer needs its
    # own temporary name; `atomic_file` has one per file.
    temporary = file.with_name(f"{uuid4().hex}.new")
    try:
        with temporary.open("xb") as opened:
            _save_webp(picture, opened)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def _save_webp(picture: Image.Image, file: IO[bytes]) -> None:
    picture.save(file, "WEBP", quality=_WEBP_QUALITY, method=_WEBP_METHOD)
