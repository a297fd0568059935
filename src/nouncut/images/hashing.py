"""Telling files apart by content."""

from __future__ import annotations

import hashlib
import os

from nouncut.errors import ImageError, describe_error
from nouncut.images.files import open_regular

_DIGEST_BYTES = 20


def content_hash(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes, whatever its name or place.

    Parameters
    ----------
    path : path
        The file. It is read in pieces, so its size does not matter.

    Returns
    -------
    str
        40 hexadecimal digits (BLAKE2b, 20 bytes).

    Raises
    ------
    ImageError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.images.hashing import content_hash
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.jpg")
    ...     _ = path.write_bytes(b"pixels")
    ...     content_hash(path)
    'e3e4e4aa15c8eae7aade44dc94db823fa1da8230'
    """
    with open_regular(path) as file:
        try:
            digest = hashlib.file_digest(
                file,  # type: ignore[arg-type]
                lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES),
            )
        except OSError as error:
            raise ImageError(path, f"cannot be read ({describe_error(error)})") from error
    return digest.hexdigest()
