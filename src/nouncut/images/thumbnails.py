"""Small pictures, made once and kept by the content they show."""

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

_SUFFIX = ".webp"
_QUALITY = 72
_JPEG_QUALITY = 80
# Of WebP's seven efforts: a third of the usual one's time for 3 % more bytes.
_EFFORT = 2
_AT_ONCE = 64
_HASH = re.compile("[0-9a-f]{16,128}")


@dataclass(frozen=True)
class Original:
    """An image to be shown small."""

    path: Path
    content: str | None


@dataclass(frozen=True)
class Thumbnail:
    """A small picture, or why there is none."""

    file: Path | None
    problem: str = ""

    def data_uri(self) -> str | None:
        """Return the picture as an address that holds it."""
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
    """Make small upright pictures; those that are in the folder already are not made again."""
    folder = folder / str(side)
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[int, Thumbnail] = {}

    def make(number: int) -> None:
        made[number] = _thumbnail(originals[number], folder, side)

    numbers = list(originals)
    for start in range(0, len(numbers), _AT_ONCE):
        run_tasks(make, numbers[start : start + _AT_ONCE], count_threads(n_jobs))
        if progress is not None:
            progress("making thumbnails", min(start + _AT_ONCE, len(numbers)), len(numbers))
    return made


def encode_thumbnail(picture: Image.Image, side: int) -> bytes:
    """Shrink a picture to fit a square and return it as JPEG."""
    picture.thumbnail((side, side))
    file = BytesIO()
    picture.save(file, "JPEG", quality=_JPEG_QUALITY)
    return file.getvalue()


def _thumbnail(original: Original, folder: Path, side: int) -> Thumbnail:
    # A run may come from anybody; what is no hash must not lead out of the folder.
    if original.content is None or not _HASH.fullmatch(original.content):
        return Thumbnail(None, "no picture is known")
    file = folder / f"{original.content}{_SUFFIX}"
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
    # Renamed when whole: another thread, or another report, may make the same picture.
    unfinished = file.with_name(f"{uuid4().hex}.new")
    picture.save(unfinished, "WEBP", quality=_QUALITY, method=_EFFORT)
    os.replace(unfinished, file)
    return Thumbnail(file)
