"""Keys of texts; an image's key is the hash of its file."""

from __future__ import annotations

import hashlib

_DIGEST_BYTES = 20


def text_key(text: str) -> str:
    """Return the key that a text's vector is stored under."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
