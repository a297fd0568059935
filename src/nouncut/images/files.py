"""Opening files that may be anything."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nouncut.images.errors import ImageError


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open an ordinary file for reading; every failure is an `ImageError`.

    Parameters
    ----------
    path : path
        The file.

    Yields
    ------
    binary file
        Closed at the end.

    Examples
    --------
    >>> from nouncut.images.files import open_regular
    >>> with open_regular("no/such/file.jpg"):
    ...     pass
    Traceback (most recent call last):
    ...
    nouncut.images.errors.ImageError: no/such/file.jpg: cannot be read (No such file or directory)
    """
    try:
        # Opening a pipe would wait for its writer for ever, so ask before opening.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ImageError(path, "not an ordinary file")
        file = Path(path).open("rb")  # noqa: SIM115 - errors of opening are not those of reading
    except (OSError, ValueError) as error:
        raise ImageError(path, f"cannot be read ({explain(error)})") from error
    with file:
        yield file


def explain(error: BaseException) -> str:
    """Return what went wrong, in one line and without the file's name.

    Parameters
    ----------
    error : exception
        The error.

    Returns
    -------
    str
        The system's words, else the error's own, else its kind.

    Examples
    --------
    >>> from nouncut.images.files import explain
    >>> explain(FileNotFoundError(2, "No such file or directory", "a.jpg"))
    'No such file or directory'
    """
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split()) or type(error).__name__
