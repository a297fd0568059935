"""Thumbnails: a cache of WebP files named by content, and single ones as JPEG bytes."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from uuid import uuid4

from PIL import Image

from nouncut.compute.progress import Progress
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError
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
    try:
        if content_hash(original.path) != original.content:
            return Thumbnail(None, "the file has changed since the run")
        picture = open_image(original.path, min_side=side)
    except ImageError as error:
        gone = not os.path.exists(original.path)
        return Thumbnail(None, "the file is gone" if gone else error.reason)
    picture.thumbnail((side, side))
    _write_webp(picture, file)
    return Thumbnail(file)


def _write_webp(picture: Image.Image, file: Path) -> None:
    # Threads and other processes may write the same thumbnail at once, so every writer needs its
    # own temporary name; `atomic_file` has one per file.
    temporary = file.with_name(f"{uuid4().hex}.new")
    try:
        picture.save(temporary, "WEBP", quality=_WEBP_QUALITY, method=_WEBP_METHOD)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
