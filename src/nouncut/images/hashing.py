"""Identifying files by their content."""

from __future__ import annotations

import hashlib

from nouncut.compute.files import AnyPath
from nouncut.images.open import open_regular

_DIGEST_BYTES = 20


def content_hash(path: AnyPath) -> str:
    """Return a hash of a file's bytes."""
    with open_regular(path) as file:
        digest = hashlib.file_digest(
            file,  # type: ignore[arg-type]
            lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES),
        )
    return digest.hexdigest()
