"""Opening files that may be anything."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nouncut.errors import ImageError, describe_error


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open an ordinary file for reading; every failure is an `ImageError`."""
    try:
        # Opening a pipe would wait for its writer for ever, so ask before opening.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ImageError(path, "not an ordinary file")
        file = Path(path).open("rb")  # noqa: SIM115 - errors of opening are not those of reading
    except (OSError, ValueError) as error:
        raise ImageError(path, f"cannot be read ({describe_error(error)})") from error
    with file:
        yield file
