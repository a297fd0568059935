"""Pixels of any kind as RGB, a strip at a time where they are many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# White is 1 for floats, or the largest number of 8, 12 or 16 bits.
_WHITE_POINTS = (255, 4095, 65535)
_LEVELS = 2**16
# Arrays of one strip take some ten bytes per pixel.
_STRIP_PIXELS = 2**20
# Up to here, copies of the whole image are faster than strips.
_SMALL_PIXELS = 2**22


def to_rgb(image: Image.Image, factor: int = 1) -> Image.Image:
    """Convert an image to RGB; transparent pixels become white.

    With a factor, every pixel is the mean of a square of so many pixels.
    """
    is_small = image.width * image.height <= _SMALL_PIXELS or not image.has_transparency_data
    if factor == 1 and is_small and not _is_deep(image):
        return _without_transparency(image)
    black, white = _range(image) if _is_deep(image) else (0.0, 0.0)
    width, height = image.size
    rgb = Image.new("RGB", (math.ceil(width / factor), math.ceil(height / factor)))
    for top, strip in _strips(image, factor):
        if _is_deep(image):
            strip = Image.fromarray(_to_eight_bits(np.asarray(strip), black, white))
        rgb.paste(_without_transparency(strip).reduce(factor), (0, top // factor))
    return rgb


def _is_deep(image: Image.Image) -> bool:
    """Return whether an image has one channel of more than 8 bits."""
    return image.mode == "F" or image.mode.startswith("I")


def _strips(image: Image.Image, factor: int) -> Iterator[tuple[int, Image.Image]]:
    """Yield strips of whole rows with their positions, multiples of `factor`."""
    width, height = image.size
    rows = factor * max(1, _STRIP_PIXELS // (factor * width))
    for top in range(0, height, rows):
        yield top, image.crop((0, top, width, min(top + rows, height)))


def _without_transparency(image: Image.Image) -> Image.Image:
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    return image.convert("RGB")


def _range(image: Image.Image) -> tuple[float, float]:
    """Return the values that become black and white."""
    black, white = math.inf, -math.inf
    for _, strip in _strips(image, 1):
        values = np.asarray(strip)
        known = values[np.isfinite(values)]
        if len(known):
            black, white = min(black, float(known.min())), max(white, float(known.max()))
    usual = (1, *_WHITE_POINTS) if image.mode == "F" else _WHITE_POINTS
    if black >= 0 and white <= usual[-1]:
        black, white = 0.0, float(next(point for point in usual if white <= point))
    return black, white


def _to_eight_bits(values: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    if values.dtype.kind == "u":
        return np.take(_scale(np.arange(_LEVELS), black, white), values)
    return np.where(np.isfinite(values), _scale(values, black, white), np.uint8(0))


def _scale(values: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    scaled = (values.astype(np.float64) - black) * (255.0 / max(white - black, 1e-300))
    with np.errstate(invalid="ignore"):
        eight: NDArray[np.uint8] = np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)
    return eight
