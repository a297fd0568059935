"""The errors that nouncut foresees: each says what happened and what to do.

Messages name parameters in backticks (`output`, `replace=True`); the command line shows its own
options in their place.
"""

from __future__ import annotations

import os
from pathlib import Path


class NouncutError(Exception):
    """Base of all errors that nouncut foresees; `exit_code` is what the command ends with."""

    exit_code = 1


class ParameterError(NouncutError, ValueError):
    """A parameter has a value that cannot be used."""

    exit_code = 2


class InputError(NouncutError, ValueError):
    """Images, features, words or a run that cannot be read."""

    exit_code = 3


class ImageError(InputError):
    """One image file that cannot be used."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(path, reason)
        self.path = Path(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{printable_path(self.path)}: {self.reason}"


class ModelError(NouncutError):
    """A model that cannot be found, downloaded or loaded."""

    exit_code = 4


class OutputError(NouncutError):
    """A run, a report, an export or the feature store that cannot be written."""

    exit_code = 5


class LowMemoryError(NouncutError, MemoryError):
    """A run that needs more memory than it can get."""

    exit_code = 6


class ClusterError(NouncutError):
    """A Dask cluster that cannot be reached, or that lost its workers."""

    exit_code = 7


def printable_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as one line of text, safe for any terminal."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def describe_error(error: BaseException) -> str:
    """Return the system's words for an error, else its own, in one line without the file's name."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split()) or type(error).__name__
