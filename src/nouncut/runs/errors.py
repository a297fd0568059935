"""What can go wrong with a run directory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from nouncut.compute.files import explained_writing
from nouncut.errors import InputError, printable_path


def explained(directory: Path) -> AbstractContextManager[None]:
    """Turn errors of the disk into an `OutputError` with a remedy."""
    return explained_writing("the run", directory, "choose another folder with `output`")


def damaged(path: Path, reason: str) -> InputError:
    """Return the error for a file of a finished run that cannot be read."""
    return InputError(
        f"{printable_path(path)} is missing or damaged ({' '.join(reason.split())}). Run the "
        "command that made the run again."
    )
