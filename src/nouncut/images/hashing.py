"""Opening files, and identifying them by their content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError, describe_error
from nouncut.images.formats import PREFIX_BYTES, begins_like_an_image

_DIGEST_BYTES = 20
_CHUNK_BYTES = 2**20


@contextmanager
def open_regular(path: AnyPath) -> Iterator[BufferedReader]:
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


def content_hash(path: AnyPath) -> str:
    """Return a hash of a file's bytes."""
    with open_regular(path) as file:
        return _digest(file, b"")


def bytes_hash(content: bytes) -> str:
    """Return the `content_hash` of a file with these bytes."""
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def image_hash(path: AnyPath) -> str:
    """Return the `content_hash` of a file that begins like an image; refuse any other."""
    with open_regular(path) as file:
        prefix = file.read(PREFIX_BYTES)
        check_prefix(path, prefix)
        return _digest(file, prefix)


def image_bytes_hash(content: bytes, path: AnyPath) -> str:
    """Return the `image_hash` of a file whose content is known; errors name `path`."""
    check_prefix(path, content[:PREFIX_BYTES])
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def check_prefix(path: AnyPath, prefix: bytes) -> None:
    """Raise an `ImageError` unless a file begins like an image."""
    if not prefix:
        raise ImageError(path, "the file is empty")
    if not begins_like_an_image(path, prefix):
        raise ImageError(path, "not an image in a known format")


def _digest(file: BinaryIO, begin: bytes) -> str:
    digest = hashlib.blake2b(begin, digest_size=_DIGEST_BYTES)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
