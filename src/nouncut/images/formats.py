"""Which files are images, told by their first bytes and their suffixes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from nouncut.compute.files import AnyPath
from nouncut.errors import printable_path


class Format(NamedTuple):
    """A file format: its first bytes, and the class that reads it."""

    suffixes: str
    signature: bytes
    reader: str


# Only formats with a signature in the first bytes. TGA has none, so that any garbage may pass for
# it; EPS files are programs. Readers are imported when a file needs them.
_TIFF = Format(
    ".tif .tiff",
    rb"II\*\0|MM\0\*|II\0\*|MM\*\0|II\+\0|MM\0\+",
    "PIL.TiffImagePlugin:TiffImageFile",
)
_FORMATS = (
    # Not Pillow's own choice for JPEG, which looks for further frames.
    Format(".jpg .jpeg .jpe .jfif .mpo", rb"\xff\xd8\xff", "PIL.JpegImagePlugin:JpegImageFile"),
    Format(".png .apng", rb"\x89PNG\r\n\x1a\n", "PIL.PngImagePlugin:PngImageFile"),
    Format(".webp", rb"RIFF....WEBPVP8[ LX]", "PIL.WebPImagePlugin:WebPImageFile"),
    Format(".gif", rb"GIF8[79]a", "PIL.GifImagePlugin:GifImageFile"),
    _TIFF,
    Format(".bmp", rb"BM", "PIL.BmpImagePlugin:BmpImageFile"),
    # The brands mif1 and msf1 are common to AVIF and HEIF; the reader that fails comes first.
    Format(".avif .avifs", rb"....ftyp(avi[fs]|m[is]f1)", "PIL.AvifImagePlugin:AvifImageFile"),
    Format(
        ".heic .heics .heif .heifs .hif",
        rb"....ftyp(he[iv][cmsx]|m[is]f1)",
        "pillow_heif:HeifImageFile",
    ),
    Format(
        ".jp2 .j2k .j2c .jpc .jpf .jpx",
        rb"\xff\x4f\xff\x51|\0\0\0\x0cjP  \r\n\x87\n",
        "PIL.Jpeg2KImagePlugin:Jpeg2KImageFile",
    ),
    Format(".ppm .pgm .pbm .pnm .pfm", rb"P[0-6fy]", "PIL.PpmImagePlugin:PpmImageFile"),
    Format(".qoi", rb"qoif", "PIL.QoiImagePlugin:QoiImageFile"),
)
# All signatures lie within this many bytes.
PREFIX_BYTES = 16


def _words(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


IMAGE_SUFFIXES = _words(*(one.suffixes for one in _FORMATS))
RAW_SUFFIXES = _words(
    ".3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .fff .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf",
    ".pef .raf .rw2 .rwl .sr2 .srf .srw .x3f",
)
_UNSUPPORTED_SUFFIXES = _words(
    ".ai .cdr .dds .emf .eps .exr .hdr .icns .ico .jxl .pcx .psb .psd .svg .tga .wmf .xcf"
)


@cache
def _signatures() -> list[tuple[re.Pattern[bytes], Format]]:
    return [(re.compile(one.signature, re.DOTALL), one) for one in _FORMATS]


def matching_formats(prefix: bytes) -> list[Format]:
    """Return the formats that a file may have, by its first bytes."""
    return [one for pattern, one in _signatures() if pattern.match(prefix)]


def load_reader(image_format: Format) -> Callable[..., Any]:
    """Import the class that reads a format, called with a file and its name."""
    module, name = image_format.reader.split(":")
    reader: Callable[..., Any] = getattr(import_module(module), name)
    return reader


def is_raw(path: AnyPath, prefix: bytes) -> bool:
    """Return whether a file is a RAW photo by its suffix, unless its first bytes deny it.

    Many RAW files are TIFF files inside, whose first image is a small thumbnail.
    """
    suffix = os.path.splitext(path)[1].lower()
    return suffix in RAW_SUFFIXES and set(matching_formats(prefix)) <= {_TIFF}


def begins_like_an_image(path: AnyPath, prefix: bytes) -> bool:
    """Return whether a file has the first bytes of an image, or may be a RAW photo."""
    return bool(matching_formats(prefix)) or is_raw(path, prefix)


def reason_by_suffix(suffix: str) -> str | None:
    """Return why files with a suffix (in lower case) are skipped; None if they can be opened."""
    if suffix in IMAGE_SUFFIXES or (suffix in RAW_SUFFIXES and find_spec("rawpy") is not None):
        return None
    if suffix in RAW_SUFFIXES:
        return raw_needs_package(suffix)
    if suffix in _UNSUPPORTED_SUFFIXES:
        return f"an image format that nouncut cannot read ({suffix}): save it as JPEG or PNG"
    return f"not an image ({printable_path(suffix)})" if suffix else "not an image"


def raw_needs_package(suffix: str) -> str:
    """Return why a RAW photo is skipped where rawpy is not installed."""
    return f"a RAW photo{f' ({suffix})' if suffix else ''}: install nouncut[raw]"
