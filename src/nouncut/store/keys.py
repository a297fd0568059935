"""Keys of texts; an image's key is the hash of its file."""

from __future__ import annotations

import hashlib

_DIGEST_BYTES = 20


def text_key(text: str) -> str:
    """Return the key that a text's vector is stored under.

    Parameters
    ----------
    text : str
        The text, prompt filled in.

    Returns
    -------
    str
        40 hexadecimal digits (BLAKE2b, 20 bytes, of the text in UTF-8).

    Examples
    --------
    >>> from nouncut.store.keys import text_key
    >>> text_key("a photo of a cat.")
    'afc558c0f74f3480ac95a63c4f2e7d368fba27eb'
    """
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
