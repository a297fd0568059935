"""Small image files that cost much to open."""

from __future__ import annotations

import io
import runpy
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
from PIL import Image

TESTS = Path(__file__).parents[1]
# The side of a square of 198.8 million pixels.
SIDE = 14_100
MILLION = 10**6
# Types of the tags of a TIFF file.
SHORT, LONG, UNDEFINED = 3, 4, 7

pillow_heif.register_heif_opener()


# PNG


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def zeros(n_bytes: int) -> bytes:
    """Return a compressed stream of zeros, made from repetitions of one compressed block."""
    block = 2**20
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    repeated = compressor.compress(bytes(block)) + compressor.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    rest = last.compress(bytes(n_bytes % block)) + last.flush()
    # The checksum of zeros counts them.
    checksum = struct.pack(">HH", n_bytes % 65521, 1)
    return b"\x78\xda" + repeated * (n_bytes // block) + rest + checksum


def png(width: int, height: int, depth: int, colour: int, before: bytes = b"") -> bytes:
    """Return a black PNG file, with other chunks before the pixels."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = 1 + (width * channels * depth + 7) // 8
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + before
        + png_chunk(b"IDAT", zeros(row * height))
        + png_chunk(b"IEND", b"")
    )


def apng(n_frames: int) -> bytes:
    frames = [Image.new("L", (64, 64), number % 256) for number in range(n_frames)]
    return saved(frames[0], "PNG", save_all=True, append_images=frames[1:])


def compressed_text(kind: bytes, count: int) -> bytes:
    """Return chunks of text that each grow to a million bytes."""
    begin = b"k\0\0" if kind == b"zTXt" else b"k\0\1\0\0\0" if kind == b"iTXt" else b"icc\0\0"
    return png_chunk(kind, begin + zlib.compress(bytes(10**6), 9)) * count


# JPEG


def saved(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8))
    return coarse.resize((width, height), Image.Resampling.BICUBIC)


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def scans(side: int, count: int, are_empty: bool = False) -> bytes:
    """Return a progressive JPEG file whose last scan is repeated."""
    content = saved(noise(side, side), "JPEG", progressive=True, quality=10)[:-2]
    start = content.rindex(b"\xff\xda")
    last = content[start : start + 10] if are_empty else content[start:]
    return content + last * count + b"\xff\xd9"


def jpeg_with(segments: bytes) -> bytes:
    content = saved(noise(64, 64), "JPEG")
    return content[:2] + segments + content[2:]


def overlapping_tags(n_bytes: int, n_tags: int) -> bytes:
    """Return a TIFF directory whose tags all hold most of its bytes."""
    size = n_bytes - 10 - 12 * n_tags
    at = n_bytes - size
    entries = b"".join(
        struct.pack("<HHII", 40_000 + tag, UNDEFINED, size, at) for tag in range(n_tags)
    )
    begin = b"II*\0" + struct.pack("<IH", 8, n_tags) + entries
    return begin.ljust(n_bytes, b"\0")


def many_exif(n_segments: int) -> bytes:
    content = overlapping_tags(60_000 * n_segments, 20_000)
    parts = (content[at : at + 60_000] for at in range(0, len(content), 60_000))
    return b"".join(segment(0xE1, b"Exif\0\0" + part) for part in parts)


def large_jpeg(side: int, progressive: bool) -> bytes:
    return saved(Image.new("RGB", (side, side), "red"), "JPEG", progressive=progressive)


# TIFF


def tiff(tags: dict[int, tuple[int, Sequence[int]]], data: bytes) -> bytes:
    """Return a TIFF file of one directory; the offsets of strips or tiles count from its data."""
    tags = dict(sorted(tags.items()))
    codes = {SHORT: "H", LONG: "I"}
    at = 8 + 2 + 12 * len(tags) + 4
    ends = at + sum(
        len(values) * struct.calcsize(codes[kind])
        for kind, values in tags.values()
        if len(values) * struct.calcsize(codes[kind]) > 4
    )
    entries, extra = b"", b""
    for tag, (kind, values) in tags.items():
        if tag in (273, 324):
            values = np.asarray(values) + ends
        packed = np.asarray(values, dtype=f"<{codes[kind].replace('I', 'u4').replace('H', 'u2')}")
        content = packed.tobytes()
        if len(content) > 4:
            entries += struct.pack("<HHII", tag, kind, len(values), at + len(extra))
            extra += content
        else:
            entries += struct.pack("<HHI", tag, kind, len(values)) + content.ljust(4, b"\0")
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + extra + data


def tiff_of_zeros(
    width: int, height: int, bits: Sequence[int], photometric: int, **other: int
) -> bytes:
    """Return a compressed TIFF file of one strip; `other` may hold a format and an orientation."""
    data = zeros(width * height * sum(bits) // 8)
    tags = {
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, list(bits)),
        259: (SHORT, [8]),
        262: (SHORT, [photometric]),
        273: (LONG, [0]),
        274: (SHORT, [other.get("orientation", 1)]),
        277: (SHORT, [len(bits)]),
        278: (LONG, [height]),
        279: (LONG, [len(data)]),
        339: (SHORT, [other.get("sample_format", 1)] * len(bits)),
    }
    if len(bits) == 4:
        tags[338] = (SHORT, [2])
    return tiff(tags, data)


def huge_tile(side: int, bits: Sequence[int]) -> bytes:
    data = zeros(side * side * sum(bits) // 8)
    return tiff(
        {
            256: (LONG, [64]),
            257: (LONG, [64]),
            258: (SHORT, list(bits)),
            259: (SHORT, [8]),
            262: (SHORT, [1 if len(bits) == 1 else 2]),
            277: (SHORT, [len(bits)]),
            322: (LONG, [side]),
            323: (LONG, [side]),
            324: (LONG, [0]),
            325: (LONG, [len(data)]),
        },
        data,
    )


def many_strips(count: int) -> bytes:
    return tiff(
        {
            256: (LONG, [1]),
            257: (LONG, [count]),
            258: (SHORT, [8]),
            259: (SHORT, [1]),
            262: (SHORT, [1]),
            273: (LONG, np.zeros(count, dtype=np.int64)),
            277: (SHORT, [1]),
            278: (LONG, [1]),
            279: (LONG, np.ones(count, dtype=np.int64)),
        },
        bytes(100),
    )


# Other formats


def gif(side: int, n_frames: int = 1, extensions: int = 0) -> bytes:
    """Return a GIF file with frames of one pixel on a large canvas."""
    screen = struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(6)
    extension = b"\x21\xfe\x01x\x00" * extensions
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return b"GIF89a" + screen + extension + frame * n_frames + b";"


def animated_webp(n_frames: int) -> bytes:
    frames = [Image.new("RGB", (16, 16), (number % 256, 0, 0)) for number in range(n_frames)]
    return saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], method=0)


def claimed_webp(width: int, height: int) -> bytes:
    content = bytearray(saved(Image.new("RGBA", (64, 64), (1, 2, 3, 4)), "WEBP", lossless=True))
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    extended = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + canvas
    body = b"WEBP" + extended + bytes(content[12:])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def claimed_heif(name: str, side: int) -> bytes:
    """Return a HEIC or AVIF file that claims another size."""
    content = saved(noise(64, 64), name)
    at = content.index(b"ispe") + 8
    return content[:at] + struct.pack(">II", side, side) + content[at + 8 :]


def claimed_jpeg_2000(side: int) -> bytes:
    content = bytearray(saved(noise(64, 64), "JPEG2000", no_jp2=True))
    at = content.index(b"\xff\x51") + 6
    content[at : at + 8] = struct.pack(">II", side, side)
    content[at + 16 : at + 24] = struct.pack(">II", side, side)
    return bytes(content)


def qoi(side: int, run: bytes = b"\xfd") -> bytes:
    """Return a QOI file of runs of 62 pixels."""
    return b"qoif" + struct.pack(">IIBB", side, side, 3, 0) + run * (side * side // 62 + 1)


def bmp_runs(side: int) -> bytes:
    """Return a BMP file of runs of up to 255 pixels."""
    row = b"\xff\x01" * (side // 255) + bytes([side % 255, 1]) + b"\0\0"
    data = row * side + b"\0\1"
    info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(data), 0, 0, 256, 0)
    return (
        b"BM" + struct.pack("<IHHI", 54 + 1024 + len(data), 0, 0, 1078) + info + bytes(1024) + data
    )


def raw_with_preview(preview: bytes) -> bytes:
    """Return a RAW photo of a small sensor with a preview."""
    writers = runpy.run_path(str(TESTS / "images" / "conftest.py"))
    sensor = np.zeros((80, 120, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.dng")
        writers["_write_with_preview"](path, writers["_CAMERA"], sensor, preview)
        return path.read_bytes()


def claimed_preview(width: int, height: int) -> bytes:
    """Return a RAW photo whose preview claims another size."""
    content = bytearray(raw_with_preview(saved(noise(1024, 1024), "JPEG")))
    at = content.index(b"\xff\xc0\0") + 5
    content[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(content)


BOMBS: dict[str, Callable[[], bytes]] = {
    "grey-16.png": lambda: png(SIDE, SIDE, 16, 0),
    "grey-alpha-16.png": lambda: png(SIDE, SIDE, 16, 4),
    "rgb-16.png": lambda: png(SIDE, SIDE, 16, 2),
    "rgba-16.png": lambda: png(SIDE, SIDE, 16, 6),
    "rgba-8.png": lambda: png(11_800, 11_800, 8, 6),
    "grey-8.png": lambda: png(SIDE, SIDE, 8, 0),
    "palette.png": lambda: png(SIDE, SIDE, 8, 3, png_chunk(b"PLTE", bytes(768))),
    "palette-clear.png": lambda: png(
        SIDE, SIDE, 8, 3, png_chunk(b"PLTE", bytes(768)) + png_chunk(b"tRNS", bytes(256))
    ),
    "one-bit.png": lambda: png(SIDE, SIDE, 1, 0),
    "wide.png": lambda: png(200 * MILLION, 1, 8, 0),
    "wide-rgba-16.png": lambda: png(30 * MILLION, 1, 16, 6),
    "tall.png": lambda: png(1, 200 * MILLION, 8, 0),
    "narrow.png": lambda: png(10, 7 * MILLION, 8, 2),
    "zTXt.png": lambda: png(64, 64, 8, 0, compressed_text(b"zTXt", 1000)),
    "iTXt.png": lambda: png(64, 64, 8, 0, compressed_text(b"iTXt", 1000)),
    "iCCP.png": lambda: png(64, 64, 8, 0, compressed_text(b"iCCP", 10_000)),
    "chunks.png": lambda: png(64, 64, 8, 0, png_chunk(b"teSt", b"") * 2 * MILLION),
    "exif.png": lambda: png(64, 64, 8, 0, png_chunk(b"eXIf", overlapping_tags(2**21, 20_000))),
    "frames.png": lambda: apng(2000),
    "comment.ppm": lambda: b"P6 #" + b"x" * 50 * MILLION + b"\n64 64 255\n" + bytes(3 * 64**2),
    "spaces.ppm": lambda: b"P6" + b" " * 50 * MILLION + b"64 64 255\n" + bytes(3 * 64**2),
    "plain.ppm": lambda: b"P3 4000 4000 255\n" + b"0 " * 48 * MILLION,
    "bits.pbm": lambda: b"P1 9000 9000\n" + b"0" * 81 * MILLION,
    "odd-maximum.ppm": lambda: b"P6 4000 4000 254\n" + bytes(48 * MILLION),
    "2000-scans.jpg": lambda: scans(1024, 2000),
    "2000-scans-large.jpg": lambda: scans(2048, 2000),
    "empty-scans.jpg": lambda: scans(4096, 50_000, are_empty=True),
    "few-scans-large.jpg": lambda: scans(6400, 30),
    "progressive.jpg": lambda: large_jpeg(SIDE, True),
    "large.jpg": lambda: large_jpeg(SIDE, False),
    "exif.jpg": lambda: jpeg_with(many_exif(40)),
    "profile.jpg": lambda: jpeg_with(segment(0xE2, b"ICC_PROFILE\0\1\xff" + bytes(65_000)) * 800),
    "fill.jpg": lambda: jpeg_with(b"\xff" * 50 * MILLION),
    "comments.jpg": lambda: jpeg_with(segment(0xFE, b"x") * 5 * MILLION),
    "rgba-16.tif": lambda: tiff_of_zeros(SIDE, SIDE, (16,) * 4, 2),
    "rgb-8.tif": lambda: tiff_of_zeros(11_700, 11_700, (8,) * 3, 2),
    "rgb-8-turned.tif": lambda: tiff_of_zeros(11_700, 11_700, (8,) * 3, 2, orientation=6),
    "grey-8.tif": lambda: tiff_of_zeros(13_500, 13_500, (8,), 1),
    "grey-16.tif": lambda: tiff_of_zeros(13_500, 13_500, (16,), 1),
    "float.tif": lambda: tiff_of_zeros(11_000, 11_000, (32,), 1, sample_format=3),
    "tile.tif": lambda: huge_tile(14_000, (8,)),
    "tile-rgb.tif": lambda: huge_tile(25_600, (8, 8, 8)),
    "strips.tif": lambda: many_strips(8 * MILLION),
    "some-strips.tif": lambda: many_strips(900_000),
    "tags.tif": lambda: overlapping_tags(2**21, 20_000),
    "canvas.gif": lambda: gif(SIDE),
    "frames.gif": lambda: gif(64, n_frames=500_000),
    "extensions.gif": lambda: gif(64, extensions=5 * MILLION),
    "frames.webp": lambda: animated_webp(2000),
    "canvas.webp": lambda: claimed_webp(13_500, 13_500),
    "wide-canvas.webp": lambda: claimed_webp(2**24, 11),
    "claimed.heic": lambda: claimed_heif("HEIF", 7000),
    "claimed.avif": lambda: claimed_heif("AVIF", 6400),
    "large.avif": lambda: saved(Image.new("RGB", (6400, 6400)), "AVIF", speed=10),
    "claimed.j2k": lambda: claimed_jpeg_2000(SIDE),
    "large.jp2": lambda: saved(Image.new("RGB", (7000, 7000)), "JPEG2000"),
    "runs.qoi": lambda: qoi(SIDE),
    "differences.qoi": lambda: qoi(4000, b"\x6a" * 62),
    "runs.bmp": lambda: bmp_runs(SIDE),
    "preview.dng": lambda: claimed_preview(60_000, 60_000),
    "preview-scans.dng": lambda: raw_with_preview(scans(1024, 2000)),
}
