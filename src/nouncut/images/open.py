"""From a file to upright RGB pixels."""

from __future__ import annotations

import os
import re
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError, describe_error
from nouncut.images.decoder_messages import decoder_messages
from nouncut.images.formats import PREFIX_BYTES, is_raw, load_reader, matching_formats
from nouncut.images.hashing import check_prefix, open_regular
from nouncut.images.raw import is_raw_tiff, open_raw

# The largest phone sensors have 16,320 x 12,240 pixels.
MAX_PIXELS = 200_000_000
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
# White is 1 for floats, or the largest number of 8, 12 or 16 bits.
_WHITE_POINTS = (255, 4095, 65535)


def open_image(
    path: AnyPath, *, min_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Open an image file as upright RGB.

    An animation gives its first frame. A RAW photo gives the preview that the camera stored, if
    that is large enough, and is developed otherwise. Transparent pixels become white. Images of
    more than 8 bits are scaled from the smallest usual range that holds their values (0 to 1 for
    floats; 8, 12 or 16 bits), or else from their minimum and maximum. With `min_side`, large JPEG
    files are decoded at a smaller size whose sides are at least that long.
    """
    with open_regular(path) as file:
        prefix = file.read(PREFIX_BYTES)
        check_prefix(path, prefix)
        with decoder_messages() as messages:
            try:
                image = _identify(file, path, prefix, max_pixels)
                _check_size(image.size, path, max_pixels)
                if min_side is not None:
                    image.draft(None, (min_side, min_side))
                image.load()
                upright = _turn_upright(_to_rgb(image), image)
            except ImageError:
                raise
            except Exception as error:  # damaged files make Pillow's readers raise anything
                raise ImageError(path, _broken(error, messages)) from error
    # A later reader must not find the orientation and turn the image a second time.
    upright.info = {}
    return upright


def _identify(file: BinaryIO, path: AnyPath, prefix: bytes, max_pixels: int) -> Any:
    """Return an image that is not decoded yet.

    Without `PIL.Image.open`, which has a limit of its own; `_check_size` is ours.
    """

    def check_size(size: tuple[int, int]) -> None:
        _check_size(size, path, max_pixels)

    if is_raw(path, prefix):
        return open_raw(file, path, check_size)
    problem: Exception | None = None
    for image_format in matching_formats(prefix):
        file.seek(0)
        try:
            image = load_reader(image_format)(file, os.fspath(path))
        except ImportError as error:
            problem = ImageError(path, f"needs a package that is not installed ({error})")
        except Exception as error:
            problem = error
        else:
            return open_raw(file, path, check_size) if is_raw_tiff(image) else image
    assert problem is not None  # `check_prefix` has found a format
    raise problem


def _broken(error: Exception, messages: list[str]) -> str:
    """Return why an image cannot be decoded, in the same words for the same kind of damage."""
    if isinstance(error, Image.DecompressionBombError):  # Pillow's own limit for some formats
        return "more pixels than Pillow permits; make the image smaller"
    # Pillow's words for a problem that libtiff has explained are "decoder error -2".
    words = messages[0] if messages else describe_error(error)
    words = _NUMBERS_IN_BRACKETS.sub("", "".join(filter(str.isprintable, words)))
    words = _NUMBER.sub("N", words).strip(" .")[:_MAX_CHARACTERS]
    return f"the image is broken ({words if len(words) > 1 else type(error).__name__})"


def _check_size(size: tuple[int, int], path: AnyPath, max_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(path, "the image has no pixels")
    if width * height > max_pixels:
        raise ImageError(
            path,
            f"{width} x {height} pixels are more than the {max_pixels} permitted; "
            "make the image smaller",
        )


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I"):
        return Image.fromarray(_to_eight_bits(np.asarray(image))).convert("RGB")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    return image.convert("RGB")


def _to_eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(values.shape, dtype=np.uint8)
    black, white = float(values[known].min()), float(values[known].max())
    usual = (1, *_WHITE_POINTS) if values.dtype.kind == "f" else _WHITE_POINTS
    if black >= 0 and white <= usual[-1]:
        black, white = 0.0, float(next(point for point in usual if white <= point))
    scaled = (values.astype(np.float64) - black) * (255.0 / max(white - black, 1e-300))
    eight: NDArray[np.uint8] = np.rint(np.clip(np.where(known, scaled, 0), 0, 255)).astype(np.uint8)
    return eight


def _turn_upright(rgb: Image.Image, image: Image.Image) -> Image.Image:
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged metadata do not make the pixels unusable
        turn = None
    return rgb if turn is None else rgb.transpose(turn)
