"""How much memory and processor time one image file may take.

A decoder in C cannot be interrupted, so what it will need is worked out from the header before it
starts. `bounded_file` stops whatever reads the file piece by piece.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError
from nouncut.images.bounded_file import TOO_SLOW, LimitError
from nouncut.images.tiff import tiff_bytes

# The largest phone sensors have 16,320 x 12,240 pixels.
MAX_PIXELS = 200_000_000
MAX_BYTES = 600_000_000
# Images that need more are opened one at a time. Photographs of 24 million pixels need less.
_LARGE_BYTES = 300_000_000
# Images with more pixels are shrunk while they are converted.
_LARGE_PIXELS = 25_000_000
_RGB_BYTES = 4
_ROW_POINTER = 8
# Strips, palettes, libraries and what decoders keep of a row or a block.
_OVERHEAD = 24_000_000
# Bytes per pixel of decoders that hold the image several times: their own planes, the copy that
# they return and Pillow's; without and with transparency. Measured, with 4:4:4 if there is such.
_SEVERAL_TIMES = {
    "WEBP": (16, 16),
    "AVIF": (14, 18),
    "HEIF": (11, 13),
    "HEIF, more than 8 bits": (16, 21),
    "JPEG2000": (20, 25),
}
# Decoders in Python collect all pixels before they copy them.
_PYTHON_CODECS = {"qoi", "ppm", "ppm_plain", "bmp_rle"}
_ONE_BYTE, _TWO_BYTES = {"1", "L", "P"}, "I;16"
# Every scan of a JPEG file passes over all coefficients, at 1 to 2 ns per pixel.
_SCANNED_PIXELS = 2_000_000_000
_START_OF_SCAN = b"\xff\xda"
# The least bytes of a scan; images up to so many pixels need little memory in any case.
_SCAN_BYTES, _SMALL_PIXELS = 10, 1_000_000
# Markers of JPEG 2000.
_CODESTREAM, _CODING_STYLE = b"\xff\x4f\xff\x51", b"\xff\x52\x00"
_CHUNK = 2**20

_large = threading.Lock()


@contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """Wait until no other large image is being opened, if this one is large."""
    if n_bytes <= _LARGE_BYTES:
        yield
    else:
        with _large:
            yield


def shrink_factor(size: tuple[int, int], min_side: int | None) -> int:
    """Return by how much a large image is shrunk, so that its sides are at least `min_side`."""
    if min_side is None or size[0] * size[1] <= _LARGE_PIXELS:
        return 1
    return max(1, min(size) // min_side)


class Limits:
    """The limits for one file."""

    def __init__(self, path: AnyPath, n_file_bytes: int, max_pixels: int) -> None:
        self.path, self.n_file_bytes, self.max_pixels = path, n_file_bytes, max_pixels

    def check(self, size: tuple[int, int], n_bytes: int = 0) -> None:
        """Raise an `ImageError` if an image has no pixels, or too many, or takes too much memory.

        `size` is the size in the file; the image may be decoded at a smaller one.
        """
        width, height = size
        if width < 1 or height < 1:
            raise ImageError(self.path, "the image has no pixels")
        if width * height > self.max_pixels or n_bytes > MAX_BYTES:
            memory = f", {n_bytes / 1e6:,.0f} MB" if n_bytes else ""
            raise ImageError(
                self.path,
                f"too large when opened: {width} x {height} pixels{memory} (at most "
                f"{self.max_pixels / 1e6:g} million pixels and {MAX_BYTES / 1e6:.0f} MB); make the "
                "image smaller",
            )


def memory_needed(
    image: Any,
    decoded: tuple[int, int],
    factor: int,
    *,
    n_file_bytes: int,
    n_coefficients: int = 0,
) -> int:
    """Return about how many bytes it takes to decode an image and to convert it to RGB.

    The image is decoded at the size `decoded`, and the result is smaller by a factor. A JPEG
    decoder may have to keep coefficients of the whole image.
    """
    width, height = decoded
    # Converted, and perhaps turned.
    made = 2 * _RGB_BYTES * math.ceil(width / factor) * math.ceil(height / factor)
    stored = width * height * _bytes_stored(image.mode) + _ROW_POINTER * height
    if image.format in _SEVERAL_TIMES:
        is_deep = image.format == "HEIF" and image.info.get("bit_depth", 8) > 8
        kind = "HEIF, more than 8 bits" if is_deep else image.format
        per_pixel = _SEVERAL_TIMES[kind][image.mode.endswith("A")]
        return _OVERHEAD + 2 * n_file_bytes + max(per_pixel * width * height, stored + made)
    decoder = 2 * n_coefficients + _decoder_bytes(image, width, stored)
    return _OVERHEAD + stored + max(made, decoder)


def count_coefficients(image: Any, size: tuple[int, int]) -> int:
    """Return the number of coefficients in a JPEG file, whose colours may have fewer pixels."""
    shares = [h * v for _, h, v, _ in image.layer]
    return int(size[0] * size[1] * sum(shares) / max(1, *shares))


def check_webp(begin: bytes, limits: Limits) -> None:
    """Check the size in a WebP file's header: Pillow's reader allocates all memory at once."""
    rest = begin[20:30]
    if begin[8:12] != b"WEBP" or len(rest) < 10:
        return
    if begin[12:16] == b"VP8X":
        width = 1 + int.from_bytes(rest[4:7], "little")
        height = 1 + int.from_bytes(rest[7:10], "little")
    elif begin[12:16] == b"VP8L":
        bits = int.from_bytes(rest[1:5], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (side & 0x3FFF for side in struct.unpack("<HH", rest[6:]))
    limits.check((width, height), _SEVERAL_TIMES["WEBP"][0] * width * height)


def check_scans(image: Any, size: tuple[int, int], n_file_bytes: int) -> bool:
    """Return whether a JPEG file has several scans; raise a `LimitError` if they take too long."""
    pixels = size[0] * size[1]
    is_small = pixels <= _SMALL_PIXELS and pixels * n_file_bytes <= _SCANNED_PIXELS * _SCAN_BYTES
    if image.format != "JPEG" or is_small or not _has_several_scans(image):
        return False
    image.fp.seek(0)
    scans = 0
    while chunk := image.fp.read(_CHUNK):
        scans += chunk.count(_START_OF_SCAN)
    if scans * pixels > _SCANNED_PIXELS:
        raise LimitError(TOO_SLOW)
    return True


def _has_several_scans(image: Any) -> bool:
    """Return whether a JPEG file, read up to its first scan, may have further ones."""
    if "progressive" in image.info:
        return True
    length = 6 + 2 * image.layers
    image.fp.seek(max(0, image.fp.tell() - length - len(_START_OF_SCAN)))
    # The first scan of an ordinary file holds all colours.
    return bool(image.fp.read(5) != _START_OF_SCAN + struct.pack(">HB", length, image.layers))


def _bytes_stored(mode: str) -> int:
    return 1 if mode in _ONE_BYTE else 2 if mode.startswith(_TWO_BYTES) else 4


def _decoder_bytes(image: Any, width: int, stored: int) -> int:
    """Return the memory of the decoder itself."""
    if image.format == "PNG":
        return 3 * 8 * width  # rows of four channels of 16 bits
    if image.format == "TIFF":
        return tiff_bytes(image, stored)
    if any(tile[0] in _PYTHON_CODECS for tile in getattr(image, "tile", ())):
        return 2 * stored
    return 0


def decode_smaller(image: Any, min_side: int) -> tuple[int, int]:
    """Choose a smaller size to decode at, if the format has some, and return it."""
    if image.format != "JPEG2000":
        image.draft(None, (min_side, min_side))
        return image.width, image.height
    factor = shrink_factor(image.size, min_side)
    image.reduce = min(int(math.log2(factor)), _halvings(image)) if factor > 1 else 0
    return tuple(math.ceil(side / 2**image._reduce) for side in image.size)


def _halvings(image: Any) -> int:
    """Return how often a JPEG 2000 image can be halved, by leaving out the finest details."""
    image.fp.seek(0)
    header = image.fp.read(_CHUNK)
    at = header.find(_CODING_STYLE, header.find(_CODESTREAM))
    return header[at + 9] if 0 <= at < len(header) - 9 else 0
