"""Which files are images."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

# Only formats with a signature in the first bytes. TGA has none, so that any garbage may pass for
# it; EPS files are programs.
_FORMATS = (
    "JPEG",
    "PNG",
    "WEBP",
    "GIF",
    "TIFF",
    "BMP",
    "AVIF",
    "HEIF",
    "JPEG2000",
    "PPM",
    "QOI",
)
# All signatures lie within this many bytes.
PREFIX_BYTES = 16
HEIC_SUFFIXES = frozenset({".heic", ".heics", ".heif", ".heifs", ".hif"})


@lru_cache(maxsize=1)
def _readable_formats() -> tuple[str, ...]:
    """Return the formats that the installed Pillow and its plug-ins can read."""
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@lru_cache(maxsize=1)
def image_suffixes() -> frozenset[str]:
    """Return the suffixes of image files, in lower case."""
    formats = {*_readable_formats(), "MPO"}
    registered = Image.registered_extensions()
    return frozenset(suffix.lower() for suffix, name in registered.items() if name in formats)


def matching_readers(prefix: bytes) -> list[Callable[..., Any]]:
    """Return the Pillow readers that recognise a file by its first bytes."""
    readers: list[Callable[..., Any]] = []
    for name in _readable_formats():
        reader, accepts = Image.OPEN[name]
        # `accepts` returns a string if Pillow knows the format but was built without it.
        if accepts is None or accepts(prefix) is True:
            # Pillow's own choice for JPEG looks for further frames; only the first is needed.
            readers.append(JpegImageFile if name == "JPEG" else reader)
    return readers
