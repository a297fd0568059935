"""What can go wrong with image files, and how their names are shown."""

from __future__ import annotations

import os
from pathlib import Path


class ImageError(Exception):
    """An image file that cannot be used.

    Parameters
    ----------
    path : path
        The file.
    reason : str
        What is wrong with it, in words for the user.

    Examples
    --------
    >>> from nouncut.images import ImageError
    >>> print(ImageError("holiday/beach.jpg", "the file is empty"))
    holiday/beach.jpg: the file is empty
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(path, reason)
        self.path = Path(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{printable_path(self.path)}: {self.reason}"


class NoImagesError(ValueError):
    """Raised where images were asked for and none was found.

    Examples
    --------
    >>> import tempfile
    >>> from nouncut.images import NoImagesError, scan_images
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     try:
    ...         scan_images(empty)
    ...     except NoImagesError as error:
    ...         print(str(error).startswith("No images found"))
    True
    """


def printable_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text that any terminal or file can take, on one line.

    Names may hold newlines, and on Linux bytes that are no text at all; those are escaped.

    Parameters
    ----------
    path : path
        The path.

    Returns
    -------
    str
        The path, escaped where needed.

    Examples
    --------
    >>> from nouncut.images import printable_path
    >>> printable_path("Büro/two\nlines.jpg")
    'Büro/two\\nlines.jpg'
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
