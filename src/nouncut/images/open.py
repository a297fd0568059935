"""From a file to upright RGB pixels."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.errors import ImageError, describe_error
from nouncut.images.files import open_regular
from nouncut.images.formats import PREFIX_BYTES, matching_readers

# Just enough for the largest sensors in phones (16,320 x 12,240).
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
# White points in use: floats from 0 to 1, then 8, 12 and 16 bits, whatever the container holds.
_WHITE_POINTS = (255, 4095, 65535)


def open_image(
    path: str | os.PathLike[str], *, min_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Open an image file as upright RGB.

    Of an animation the first frame is taken. Transparent parts become white. Images of more
    than 8 bits are scaled to the smallest usual range that holds their values (0 to 1 for
    floats; 8, 12 or 16 bits), others from their least to their greatest value.
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
        except Exception as error:
            # Pillow's readers let any kind of exception out when a file is damaged.
            raise ImageError(path, f"the image is broken ({describe_error(error)})") from error
    # Whoever looks for an orientation later must not turn the image a second time.
    upright.info = {}
    return upright


def _identify(file: BinaryIO, path: str | os.PathLike[str]) -> Any:
    """Return an image that is not decoded yet.

    `PIL.Image.open` is not used because it warns of large images, and warnings cannot be
    silenced in one thread alone; `_check_size` takes that part.
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


def _check_size(size: tuple[int, int], path: str | os.PathLike[str], max_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(path, "the image has no pixels")
    if width * height > max_pixels:
        raise ImageError(
            path,
            f"{width} x {height} pixels are more than the {max_pixels} permitted; "
            "make the image smaller or raise max_pixels",
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
    except Exception:
        # Damaged metadata says nothing about the pixels.
        turn = None
    return rgb if turn is None else rgb.transpose(turn)
