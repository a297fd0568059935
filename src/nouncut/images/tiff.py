"""What is special about TIFF files: the memory that they need, and a limit of Pillow's."""

from __future__ import annotations

import math
import struct
from typing import Any, BinaryIO

from PIL import Image

from nouncut.images.bounded_file import LimitError

_BITS, _PHOTOMETRIC, _STRIP_OFFSETS, _TILE_OFFSETS = 258, 262, 273, 324
_ORIENTATION, _SAMPLES, _ROWS_PER_STRIP, _TILE_WIDTH, _TILE_LENGTH = 274, 277, 278, 322, 323
_YCBCR, _RGBA_BYTES = 6, 4
# Types of tags that stay bytes; the values of other tags become Python objects.
_BYTES, _TEXT, _UNDEFINED = 1, 2, 7
# Pillow takes some 350 bytes for every strip or tile.
_MAX_VALUES, _STRIP_BYTES = 1_000_000, 350
_MAX_TAGS = 2**16


def check_tiff_directory(file: BinaryIO, n_file_bytes: int) -> None:
    """Raise a `LimitError` if a tag of a TIFF file has too many values.

    Tags that claim more than the file holds are left out by Pillow.
    """
    begin = file.read(16).ljust(16, b"\0")
    order = "<" if begin.startswith(b"I") else ">"
    is_big = 43 in begin[2:4]
    (start,) = struct.unpack(order + ("Q" if is_big else "I"), begin[8:] if is_big else begin[4:8])
    count_bytes, entry = (8, order + "HHQ8x") if is_big else (2, order + "HHI4x")
    file.seek(min(start, 2**62))
    n_tags = int.from_bytes(file.read(count_bytes), "little" if order == "<" else "big")
    size = struct.calcsize(entry)
    entries = file.read(min(n_tags, _MAX_TAGS) * size)
    for _, kind, n_values in struct.iter_unpack(entry, entries[: len(entries) // size * size]):
        is_kept = kind in (_BYTES, _TEXT, _UNDEFINED)
        if _MAX_VALUES < n_values <= n_file_bytes and not is_kept:
            raise LimitError("too many strips or tiles to open; save the image again as JPEG")


def tiff_bytes(image: Any, stored: int) -> int:
    """Return the memory for one strip or tile, and for turning an image that takes `stored`."""
    tags = image.tag_v2
    width, height = image._tile_size
    bits = tags.get(_SAMPLES, 1) * max(tags.get(_BITS, (1,)))
    pixel = _RGBA_BYTES if tags.get(_PHOTOMETRIC) == _YCBCR else math.ceil(bits / 8)
    rows = min(tags.get(_ROWS_PER_STRIP, height), height)
    block = tags.get(_TILE_WIDTH, width) * tags.get(_TILE_LENGTH, rows)
    n_blocks = max(len(tags.get(tag, ())) for tag in (_STRIP_OFFSETS, _TILE_OFFSETS))
    turned = stored if tags.get(_ORIENTATION, 1) != 1 else 0
    return int(pixel * block + _STRIP_BYTES * n_blocks + turned)


def allocate_tiff(image: Any) -> None:
    """Allocate an image that Pillow would refuse to: our limit is the same for all formats."""
    width, height = image._tile_size
    if Image.MAX_IMAGE_PIXELS is not None and width * height > Image.MAX_IMAGE_PIXELS:
        image.im = Image.new(image.mode, (width, height)).im
