"""Thumbnails and originals by row number, only if their files hold what they held in the run."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from nouncut.errors import ImageError, InputError, OutputError
from nouncut.images.formats import PREFIX_BYTES, is_raw, matching_formats
from nouncut.images.hashing import bytes_hash, content_hash, open_regular
from nouncut.images.open import open_image
from nouncut.images.thumbnails import Original, make_thumbnails, thumbnail_bytes
from nouncut.report.thumbnail_files import make_folder, read_thumbnail
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from nouncut.runs.run import Run

SIDES = (96, 256)
# Longest side of photographs that are converted for the browser.
_LARGEST_SIDE = 2048
_JPEG_QUALITY = 90
# Larger files are converted too, so that they need not be held in memory.
_MOST_BYTES = 48 * 2**20
# What browsers show, by the first suffix of the format.
_TYPES = {
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".avif": "image/avif",
}


@dataclass(frozen=True)
class Picture:
    """An image as bytes for the browser."""

    content: bytes
    media_type: str
    etag: str


def find_original(run: Run, row: int) -> Original:
    """Return the file of an image; raise an `InputError` if there is none."""
    if not 0 <= row < len(run.assignments):
        raise InputError(f"There is no image {row}.")
    image = run.images.slice(row, 1)
    content = image["hash"][0].as_py()
    if not run.has_images or content is None:
        raise InputError("There is no picture of this image: the run was made from features.")
    return Original(real_paths(image)[0], content)


def thumbnail(run: Run, row: int, side: int) -> Picture:
    """Return a thumbnail; it is kept in the run directory where that can be written to."""
    original = find_original(run, row)
    try:
        content = _kept_thumbnail(run, original, side)
    except (OutputError, OSError):
        content = None
    if content is None:
        content = _unkept_thumbnail(original, side)
    return Picture(content, "image/webp", f'"{original.content}-{side}"')


def _kept_thumbnail(run: Run, original: Original, side: int) -> bytes | None:
    """Return a thumbnail from its file, which is made if need be."""
    folder = make_folder(run.directory, side)
    made = make_thumbnails({0: original}, folder.parent, side, n_jobs=1)[0]
    if made.file is None:
        raise InputError(f"There is no picture: {made.problem}.")
    content = read_thumbnail(made.file, side)
    if content is None:
        made.file.unlink(missing_ok=True)
    return content


def _unkept_thumbnail(original: Original, side: int) -> bytes:
    try:
        return thumbnail_bytes(original, side)
    except ImageError as error:
        raise InputError(f"There is no picture: {error.reason}.") from error


def picture(run: Run, row: int) -> Picture:
    """Return an image itself if browsers show its format, else a JPEG of it."""
    original = find_original(run, row)
    try:
        with open_regular(original.path) as file:
            content = file.read(_MOST_BYTES + 1)
        media_type = _media_type(original, content)
        if media_type is not None and len(content) <= _MOST_BYTES:
            if bytes_hash(content) != original.content:
                raise _changed()
            return Picture(content, media_type, f'"{original.content}"')
        del content
        return Picture(_as_jpeg(original), "image/jpeg", f'"{original.content}-jpeg"')
    except ImageError as error:
        raise InputError(f"There is no picture: {error.reason}.") from error


def _media_type(original: Original, content: bytes) -> str | None:
    prefix = content[:PREFIX_BYTES]
    if is_raw(original.path, prefix):
        return None
    suffixes = {one.suffixes.split()[0] for one in matching_formats(prefix)}
    # A brand that AVIF and HEIF share says nothing.
    return _TYPES.get(suffixes.pop()) if len(suffixes) == 1 else None


def _as_jpeg(original: Original) -> bytes:
    if content_hash(original.path) != original.content:
        raise _changed()
    image = open_image(original.path, min_side=_LARGEST_SIDE)
    image.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))
    file = BytesIO()
    image.save(file, "JPEG", quality=_JPEG_QUALITY)
    return file.getvalue()


def _changed() -> InputError:
    return InputError("There is no picture: the file has changed since the run.")
