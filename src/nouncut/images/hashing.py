"""Telling files apart by content."""

from __future__ import annotations

import hashlib
import os

from nouncut.errors import ImageError, describe_error
from nouncut.images.files import open_regular

_DIGEST_BYTES = 20


def content_hash(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes, whatever its name or place."""
    with open_regular(path) as file:
        try:
            digest = hashlib.file_digest(
                file,  # type: ignore[arg-type]
                lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES),
            )
        except OSError as error:
            raise ImageError(path, f"cannot be read ({describe_error(error)})") from error
    return digest.hexdigest()
