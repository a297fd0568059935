"""RAW photos: the preview that the camera stored, or the sensor's data developed by LibRaw."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from PIL import Image
from PIL.ExifTags import Base
from PIL.JpegImagePlugin import JpegImageFile

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError
from nouncut.images.bounded_file import BoundedFile
from nouncut.images.decoder_messages import dropped_stderr_lines
from nouncut.images.formats import raw_needs_package
from nouncut.images.limits import Limits, room_for

if TYPE_CHECKING:
    from rawpy import RawPy

# The usual input of a model has 224 to 260 pixels. A preview of about twice that loses nothing; the
# thumbnails of 160 x 120 pixels in many files would.
_MIN_SIDE = 512
# Of the sensor; what LibRaw takes at full size and at half.
_BYTES_PER_PIXEL = (24, 10)
# EXIF orientations in the order of LibRaw's flips.
_ORIENTATIONS = (1, 2, 4, 3, 5, 8, 6, 7)
# What LibRaw and the JPEG decoder inside it print.
_LIBRAW_LINES = (
    rb"(?i): (unexpected end of file|data corrupted at -?\d+)$"
    rb"|^(Corrupt JPEG data|Premature end of JPEG|Inconsistent progression|Invalid SOS parameters)"
)
# Tags of TIFF files.
_SUBFILE_TYPE, _SUB_IFDS, _DNG_VERSION = 254, 330, 50706
_REDUCED = 1


def is_raw_tiff(image: Any) -> bool:
    """Return whether an open TIFF file is a RAW photo, of which Pillow reads only a thumbnail."""
    tags = getattr(image, "tag_v2", {})
    is_thumbnail = tags.get(_SUBFILE_TYPE) == _REDUCED and _SUB_IFDS in tags
    return _DNG_VERSION in tags or is_thumbnail


def open_raw(file: BinaryIO, path: AnyPath, limits: Limits) -> Image.Image:
    """Return the preview of a RAW photo, not decoded yet, or the developed photo.

    The preview may be turned, as its EXIF orientation says; the developed photo is upright.
    """
    try:
        import rawpy
    except ImportError as error:
        raise ImageError(path, raw_needs_package(Path(path).suffix.lower())) from error
    file.seek(0)
    content = BytesIO(file.read())
    try:
        with dropped_stderr_lines(_LIBRAW_LINES), rawpy.RawPy() as raw:
            raw.open_buffer(content)
            limits.check((raw.sizes.width, raw.sizes.height))
            return _preview(raw) or _develop(raw, limits)
    except rawpy.LibRawFileUnsupportedError as error:
        raise ImageError(path, "a RAW photo of a kind that LibRaw cannot read") from error
    except rawpy.LibRawIOError as error:
        raise ImageError(path, "the RAW photo is broken (the file ends too early)") from error
    except rawpy.LibRawError as error:
        words = b" ".join(error.args).decode("utf-8", "replace")
        raise ImageError(path, f"the RAW photo is broken ({words})") from error


def _preview(raw: RawPy) -> Image.Image | None:
    """Return the largest preview that is a JPEG image, if it is large enough."""
    from rawpy import LibRawNonFatalError

    try:
        content = raw.extract_thumb().data
        content = content if isinstance(content, bytes) else b""
        image = JpegImageFile(BoundedFile(BytesIO(content), len(content)))
    except (LibRawNonFatalError, NotImplementedError, SyntaxError):
        return None  # there is none, or it is no JPEG image
    if min(image.size) < _MIN_SIDE:
        return None
    exif = image.getexif()
    if Base.Orientation not in exif:
        exif[Base.Orientation] = _ORIENTATIONS[raw.sizes.flip % 8]
    return image


def _develop(raw: RawPy, limits: Limits) -> Image.Image:
    size = (raw.sizes.raw_width, raw.sizes.raw_height)
    is_large = min(raw.sizes.width, raw.sizes.height) >= 2 * _MIN_SIDE
    n_bytes = limits.n_file_bytes + _BYTES_PER_PIXEL[is_large] * size[0] * size[1]
    limits.check(size, n_bytes)
    with room_for(n_bytes):
        pixels = raw.postprocess(half_size=is_large, use_camera_wb=True)
        # A monochrome sensor gives one channel.
        return Image.fromarray(pixels.squeeze()).convert("RGB")
