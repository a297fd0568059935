"""What can go wrong with a run directory, in words for the user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nouncut.images import printable_path

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class RunError(Exception):
    """A run directory that cannot be read or written; the message names it and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> from nouncut.runs import RunError, open_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         open_run(folder)
    ...     except RunError as error:
    ...         print("manifest.json" in str(error))
    True
    """


@contextmanager
def explained(directory: Path) -> Iterator[None]:
    """Turn errors of writing into a `RunError` that tells what to do.

    Parameters
    ----------
    directory : Path
        The run directory.

    Examples
    --------
    >>> import errno
    >>> from pathlib import Path
    >>> from nouncut.runs.errors import explained
    >>> with explained(Path("pets")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ...
    nouncut.runs.errors.RunError: No room left for the run in pets (No space left on device).
    What was there before is intact. Free some space, or choose a folder on a larger drive with
    --output.
    """
    try:
        yield
    except OSError as error:
        raise RunError(_explanation(error, directory)) from error


def damaged(path: Path, reason: str) -> RunError:
    """Return the error of a file of a finished run that cannot be used.

    Parameters
    ----------
    path : Path
        The file.
    reason : str
        What is wrong with it.

    Returns
    -------
    RunError
        To be raised.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.runs.errors import damaged
    >>> print(damaged(Path("images.parquet"), "it is empty"))
    images.parquet is missing or damaged (it is empty). Run the command that made the run again.
    """
    return RunError(
        f"{printable_path(path)} is missing or damaged ({' '.join(reason.split())}). Run the "
        "command that made the run again."
    )


def _explanation(error: OSError, directory: Path) -> str:
    place, words = printable_path(directory), error.strerror or str(error)
    if error.errno in _FULL:
        return (
            f"No room left for the run in {place} ({words}). What was there before is intact. "
            "Free some space, or choose a folder on a larger drive with --output."
        )
    if error.errno in _FORBIDDEN:
        return (
            f"The run directory {place} cannot be written to ({words}). Change its permissions, "
            "or choose a folder of your own with --output."
        )
    if error.errno in {errno.EEXIST, errno.ENOTDIR}:
        return (
            f"{place} cannot be a run directory: a file is in the way ({words}). Choose another "
            "folder with --output."
        )
    return (
        f"The run directory {place} cannot be used ({words}). Check the drive, or choose another "
        "folder with --output."
    )
