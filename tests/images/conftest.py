"""Pixels for all orientations, and writers of TIFF and DNG files, tag by tag."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pillow_heif
import pytest
from PIL import Image

BYTE, ASCII, SHORT, LONG, RATIONAL, SIGNED_RATIONAL = 1, 2, 3, 4, 5, 10
_CODES = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", RATIONAL: "I", SIGNED_RATIONAL: "i"}
_HEADER_BYTES = 8
# From XYZ to linear sRGB, so that the made sensor sees what a screen shows.
_SRGB_FROM_XYZ = (3.2405, -1.5371, -0.4985, -0.9693, 1.8760, 0.0416, 0.0556, -0.2040, 1.0572)
_CAMERA = {
    271: (ASCII, b"Maker\0"),
    272: (ASCII, b"Model\0"),
    50706: (BYTE, (1, 4, 0, 0)),  # DNGVersion
    50708: (ASCII, b"Maker Model\0"),
    50721: (SIGNED_RATIONAL, _SRGB_FROM_XYZ),
    50728: (RATIONAL, (1.0, 1.0, 1.0)),  # AsShotNeutral
    50778: (SHORT, (21,)),  # daylight
}

# Red, green, blue and white corners: all eight orientations differ.
_CORNERS = np.array(
    [[(255, 0, 0), (0, 255, 0), (0, 0, 0)], [(0, 0, 255), (255, 255, 255), (0, 0, 0)]]
)
_TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: np.rot90,
    7: lambda a: np.rot90(a, 2).transpose(1, 0, 2),
    8: lambda a: np.rot90(a, -1),
}

Tags = Mapping[int, tuple[int, Sequence[float]]]


@pytest.fixture(scope="session", autouse=True)
def _heic_writer():
    # For `Image.save` in tests; nouncut reads HEIC files without it.
    pillow_heif.register_heif_opener()


@pytest.fixture(scope="session")
def corners():
    """Return a maker of pixels that an EXIF orientation turns into six fields of colour."""

    def make(orientation: int = 1, side: int = 16) -> np.ndarray:
        fields = np.kron(_TURNS[orientation](_CORNERS), np.ones((side, side, 1)))
        return np.ascontiguousarray(fields.astype(np.uint8))

    return make


@pytest.fixture
def write_tiff():
    """Return a writer of an uncompressed TIFF file from its tags and pixels."""

    def write(path: Path, tags: Tags, pixels: bytes) -> Path:
        layout = {273: (LONG, (0,)), 279: (LONG, (len(pixels),)), **tags}
        offset = _HEADER_BYTES + len(_directory(layout, _HEADER_BYTES))
        layout[273] = (LONG, (offset,))
        path.write_bytes(_header() + _directory(layout, _HEADER_BYTES) + pixels)
        return path

    return write


@pytest.fixture
def write_dng(write_tiff):
    """Return a writer of RAW photos of a Bayer sensor, with or without a JPEG preview."""

    def write(
        path: Path, rgb: np.ndarray, orientation: int = 1, preview: bytes | None = None
    ) -> Path:
        camera = {**_CAMERA, 274: (SHORT, (orientation,))}
        if preview is None:
            return write_tiff(path, {**camera, **_sensor(rgb)}, _bayer(rgb))
        return _write_with_preview(path, camera, rgb, preview)

    return write


def _write_with_preview(path: Path, camera: Tags, rgb: np.ndarray, preview: bytes) -> Path:
    pixels = _bayer(rgb)
    sensor = {**_sensor(rgb), 279: (LONG, (len(pixels),))}
    width, height = Image.open(BytesIO(preview)).size

    def first(preview_offset: int, sensor_offset: int) -> bytes:
        tags = {
            **camera,
            254: (LONG, (1,)),  # a smaller version of another image
            256: (LONG, (width,)),
            257: (LONG, (height,)),
            258: (SHORT, (8, 8, 8)),
            259: (SHORT, (7,)),  # JPEG
            262: (SHORT, (6,)),  # YCbCr
            273: (LONG, (preview_offset,)),
            277: (SHORT, (3,)),
            278: (LONG, (height,)),
            279: (LONG, (len(preview),)),
            330: (LONG, (sensor_offset,)),  # SubIFDs
        }
        return _directory(tags, _HEADER_BYTES)

    at = _HEADER_BYTES + len(first(0, 0))
    pixels_at = at + len(_directory({**sensor, 273: (LONG, (0,))}, at))
    second = _directory({**sensor, 273: (LONG, (pixels_at,))}, at)
    content = first(pixels_at + len(pixels), at) + second + pixels + preview
    path.write_bytes(_header() + content)
    return path


def _header() -> bytes:
    return b"II*\0" + struct.pack("<I", _HEADER_BYTES)


def _directory(tags: Tags, start: int) -> bytes:
    """Return a directory of tags that begins at byte `start` of its file."""
    entries, values = b"", b""
    end = start + 2 + 12 * len(tags) + 4
    for tag, (kind, numbers) in sorted(tags.items()):
        if kind in (RATIONAL, SIGNED_RATIONAL):
            numbers = [part for number in numbers for part in (round(number * 10000), 10000)]
        data = struct.pack(f"<{len(numbers)}{_CODES[kind]}", *numbers)
        count = len(numbers) // (2 if kind in (RATIONAL, SIGNED_RATIONAL) else 1)
        if len(data) > 4:
            field = struct.pack("<I", end + len(values))
            values += data + b"\0" * (len(data) % 2)
        else:
            field = data.ljust(4, b"\0")
        entries += struct.pack("<HHI", tag, kind, count) + field
    return struct.pack("<H", len(tags)) + entries + bytes(4) + values


def _sensor(rgb: np.ndarray) -> dict[int, tuple[int, Sequence[float]]]:
    height, width, _ = rgb.shape
    return {
        254: (LONG, (0,)),
        256: (LONG, (width,)),
        257: (LONG, (height,)),
        258: (SHORT, (16,)),
        259: (SHORT, (1,)),
        262: (SHORT, (32803,)),  # a colour filter array
        277: (SHORT, (1,)),
        278: (LONG, (height,)),
        284: (SHORT, (1,)),
        33421: (SHORT, (2, 2)),
        33422: (BYTE, (0, 1, 1, 2)),  # red green, green blue
        50717: (LONG, (65535,)),  # WhiteLevel
    }


def _bayer(rgb: np.ndarray) -> bytes:
    linear = (rgb / 255.0) ** 2.2 * 65535
    sensor = linear[..., 1].copy()
    sensor[0::2, 0::2] = linear[0::2, 0::2, 0]
    sensor[1::2, 1::2] = linear[1::2, 1::2, 2]
    return sensor.astype("<u2").tobytes()
