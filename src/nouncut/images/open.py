"""From a file to upright RGB pixels."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError, describe_error
from nouncut.images.formats import PREFIX_BYTES, matching_readers

# The largest phone sensors have 16,320 x 12,240 pixels.
MAX_PIXELS = 200_000_000

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
# White is 1 for floats, or the largest number of 8, 12 or 16 bits.
_WHITE_POINTS = (255, 4095, 65535)


@contextmanager
def open_regular(path: AnyPath) -> Iterator[BinaryIO]:
    """Open an ordinary file for reading; errors of opening and reading become an `ImageError`."""
    try:
        # Opening a pipe would block until somebody writes to it.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ImageError(path, "not an ordinary file")
        with Path(path).open("rb") as file:
            yield file
    except ImageError:
        raise
    except (OSError, ValueError) as error:
        raise ImageError(path, f"cannot be read ({describe_error(error)})") from error


def open_image(
    path: AnyPath, *, min_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Open an image file as upright RGB.

    An animation gives its first frame. Transparent pixels become white. Images of more than 8
    bits are scaled from the smallest usual range that holds their values (0 to 1 for floats; 8, 12
    or 16 bits), or else from their minimum and maximum. With `min_side`, large JPEG files are
    decoded at a smaller size whose sides are at least that long.
    """
    with open_regular(path) as file:
        try:
            image = _identify(file, path)
            _check_size(image.size, path, max_pixels)
            if min_side is not None:
                image.draft(None, (min_side, min_side))
            image.load()
            upright = _turn_upright(_to_rgb(image), image)
        except ImageError:
            raise
        except Exception as error:  # damaged files make Pillow's readers raise anything
            raise ImageError(path, f"the image is broken ({describe_error(error)})") from error
    # A later reader must not find the orientation and turn the image a second time.
    upright.info = {}
    return upright


def _identify(file: BinaryIO, path: AnyPath) -> Any:
    """Return an image that is not decoded yet.

    `PIL.Image.open` warns of large images, and one thread cannot silence warnings for itself
    alone; `_check_size` is our check.
    """
    prefix = file.read(PREFIX_BYTES)
    if not prefix:
        raise ImageError(path, "the file is empty")
    problem: Exception | None = None
    for reader in matching_readers(prefix):
        file.seek(0)
        try:
            return reader(file, os.fspath(path))
        except Exception as error:
            problem = error
    if problem is None:
        raise ImageError(path, "not an image in a known format")
    raise ImageError(path, f"the image is broken ({describe_error(problem)})") from problem


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
