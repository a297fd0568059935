"""From a file to upright RGB pixels."""

from __future__ import annotations

import os
import re
from functools import partial
from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

from PIL import Image

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError, describe_error
from nouncut.images.bounded_file import LimitError, bounded
from nouncut.images.decoder_messages import decoder_messages
from nouncut.images.formats import PREFIX_BYTES, Format, is_raw, load_reader, matching_formats
from nouncut.images.hashing import check_prefix, open_regular
from nouncut.images.limits import (
    MAX_PIXELS,
    Limits,
    check_scans,
    check_webp,
    count_coefficients,
    decode_smaller,
    memory_needed,
    room_for,
    shrink_factor,
)
from nouncut.images.pixels import to_rgb
from nouncut.images.raw import is_raw_tiff, open_raw
from nouncut.images.tiff import allocate_tiff, check_tiff_directory

# JPEG files may be decoded at this many times the size of a model's input: its features then change
# less than by moving the photograph one pixel (benchmarks/loading.py).
DECODE_MARGIN = 2

_ORIENTATION_TAG = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Positions and sizes differ from file to file, and help nobody.
_NUMBERS_IN_BRACKETS = re.compile(r"\s*\([^()]*\d[^()]*\)")
_NUMBER = re.compile(r"\b(0x[0-9a-f]+|\d+)\b")
_MAX_CHARACTERS = 200


def open_image(
    path: AnyPath, *, min_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Open an image file as upright RGB.

    An animation gives its first frame. A RAW photo gives the preview that the camera stored, if
    that is large enough, and is developed otherwise. Transparent pixels become white. Images of
    more than 8 bits are scaled from the smallest usual range that holds their values (0 to 1 for
    floats; 8, 12 or 16 bits), or else from their minimum and maximum. With `min_side`, large images
    are decoded or converted at a smaller size whose sides are at least that long.
    """
    with open_regular(path) as whole:
        limits = Limits(path, os.fstat(whole.fileno()).st_size, max_pixels)
        file = bounded(whole, limits.n_file_bytes)
        return _open(file, limits, min_side)


def open_image_bytes(content: bytes, path: AnyPath, *, min_side: int | None = None) -> Image.Image:
    """Open the content of an image file, as `open_image` does; errors name `path`."""
    whole = BufferedReader(BytesIO(content))
    file = bounded(whole, len(content))  # type: ignore[arg-type]
    return _open(file, Limits(path, len(content), MAX_PIXELS), min_side)


def _open(file: BufferedReader, limits: Limits, min_side: int | None) -> Image.Image:
    path = limits.path
    with decoder_messages() as messages:
        prefix = file.read(PREFIX_BYTES)
        check_prefix(path, prefix)
        try:
            image = _identify(file, path, prefix, limits)
            upright = _turn_upright(_decode(image, min_side, limits), image)
        except ImageError:
            raise
        except LimitError as error:
            raise ImageError(path, str(error)) from error
        except Exception as error:  # damaged files make Pillow's readers raise anything
            raise ImageError(path, _broken(error, messages)) from error
    # A later reader must not find the orientation and turn the image a second time.
    upright.info = {}
    return upright


def _decode(image: Any, min_side: int | None, limits: Limits) -> Image.Image:
    """Return an image as RGB, smaller if it is large."""
    size = decoded = image.size
    need = partial(memory_needed, image, n_file_bytes=limits.n_file_bytes)
    limits.check(size)
    if image.format == "HEIF":  # its reader decodes a smaller image as soon as it is chosen
        limits.check(size, need(size, shrink_factor(size, min_side)))
    has_scans = check_scans(image, size, limits.n_file_bytes)
    if min_side is not None:
        decoded = decode_smaller(image, min_side)
    factor = shrink_factor(decoded, min_side)
    n_bytes = need(
        decoded, factor, n_coefficients=count_coefficients(image, size) if has_scans else 0
    )
    limits.check(size, n_bytes)
    with room_for(n_bytes):
        if image.format == "TIFF":
            allocate_tiff(image)
        image.load()
        return to_rgb(image, factor)


def _identify(file: BinaryIO, path: AnyPath, prefix: bytes, limits: Limits) -> Any:
    """Return an image that is not decoded yet.

    Without `PIL.Image.open`, which has a limit of its own.
    """
    if is_raw(path, prefix):
        return open_raw(file, path, limits)
    problem: Exception | None = None
    for image_format in matching_formats(prefix):
        file.seek(0)
        _check_header(image_format, file, limits)
        file.seek(0)
        try:
            image = load_reader(image_format)(file, os.fspath(path))
        except ImportError as error:
            problem = ImageError(path, f"needs a package that is not installed ({error})")
        except Exception as error:
            problem = error
        else:
            return open_raw(file, path, limits) if is_raw_tiff(image) else image
    assert problem is not None  # `check_prefix` has found a format
    raise problem


def _check_header(image_format: Format, file: BinaryIO, limits: Limits) -> None:
    """Check what a reader would trust before it tells the size of the image."""
    if ".webp" in image_format.suffixes:
        check_webp(file.read(30), limits)
    elif ".tif" in image_format.suffixes:
        check_tiff_directory(file, limits.n_file_bytes)


def _broken(error: Exception, messages: list[str]) -> str:
    """Return why an image cannot be decoded, in the same words for the same kind of damage."""
    if isinstance(error, Image.DecompressionBombError):  # a frame that enlarges a GIF image
        return "too large when opened: more pixels than Pillow permits; make the image smaller"
    # Pillow's words for a problem that libtiff has explained are "decoder error -2".
    words = messages[0] if messages else describe_error(error)
    words = _NUMBERS_IN_BRACKETS.sub("", "".join(filter(str.isprintable, words)))
    words = _NUMBER.sub("N", words).strip(" .")[:_MAX_CHARACTERS]
    return f"the image is broken ({words if len(words) > 1 else type(error).__name__})"


def _turn_upright(rgb: Image.Image, image: Image.Image) -> Image.Image:
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged metadata do not make the pixels unusable
        turn = None
    return rgb if turn is None else rgb.transpose(turn)
