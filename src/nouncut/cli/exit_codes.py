"""How the command ends: exit codes, and errors in words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer


class ExitCode(IntEnum):
    """What the exit codes of the command mean.

    Examples
    --------
    >>> from nouncut.cli.exit_codes import ExitCode
    >>> int(ExitCode.OUTPUT)
    5
    """

    DONE = 0
    FAILED = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    OUTPUT = 5
    INTERRUPTED = 130


class UnusableRunError(Exception):
    """The run that a command was to work with cannot be read."""


HELP = (
    "Exit codes: 0 done; 1 failed unexpectedly; 2 an option is wrong; 3 the input cannot be used "
    "(no images, no such file, no run); 4 the model cannot be had; 5 the output cannot be written "
    "(no room, no permission, another run at work); 130 interrupted."
)
_FULL_OR_FORBIDDEN = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code that belongs to an error.

    Parameters
    ----------
    error : exception
        What was raised.

    Returns
    -------
    ExitCode
        `ExitCode.FAILED` for what nobody foresaw.

    Examples
    --------
    >>> from nouncut.cli.exit_codes import exit_code
    >>> exit_code(ValueError("tau must be positive")).name
    'USAGE'
    """
    from nouncut.demo import NoDemoImagesError
    from nouncut.encoders import FeatureFileError, ModelUnavailableError
    from nouncut.exports import ExportError
    from nouncut.features import StoreError
    from nouncut.images import ImageError, NoImagesError
    from nouncut.runs import RunError

    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, ModelUnavailableError | NoDemoImagesError):
        return ExitCode.MODEL
    if isinstance(error, RunError | StoreError | ExportError):
        return ExitCode.OUTPUT
    unusable = NoImagesError | ImageError | FeatureFileError | UnusableRunError
    if isinstance(error, unusable | FileNotFoundError):
        return ExitCode.INPUT
    if isinstance(error, OSError) and error.errno in _FULL_OR_FORBIDDEN:
        return ExitCode.OUTPUT
    return ExitCode.USAGE if isinstance(error, ValueError) else ExitCode.FAILED


@contextmanager
def explained_errors(resume: str | None = None) -> Iterator[None]:
    """Turn errors into a sentence and an exit code.

    Parameters
    ----------
    resume : str, optional
        What to say when the user interrupts.

    Examples
    --------
    >>> from nouncut.cli.exit_codes import explained_errors
    >>> try:
    ...     with explained_errors():
    ...         raise ValueError("tau must be positive")
    ... except SystemExit as end:
    ...     end.code
    2
    """
    from nouncut.cli.console import complain

    try:
        yield
    except (typer.Exit, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        complain("Interrupted." if resume is None else f"Interrupted. {resume}")
        raise SystemExit(int(ExitCode.INTERRUPTED)) from None
    except Exception as error:
        code = exit_code(error)
        if code is ExitCode.FAILED:
            raise
        complain(str(error))
        raise SystemExit(int(code)) from error


@contextmanager
def reading_a_run() -> Iterator[None]:
    """Tell runs that cannot be read from those that cannot be written.

    Examples
    --------
    >>> from nouncut.cli.exit_codes import reading_a_run
    >>> from nouncut.runs import open_run
    >>> with reading_a_run():
    ...     open_run("no/such/run")
    Traceback (most recent call last):
    ...
    nouncut.cli.exit_codes.UnusableRunError: no/such/run is not a run: it has no manifest.json.
    Pass the directory that a run wrote.
    """
    from nouncut.runs import RunError

    try:
        yield
    except RunError as error:
        raise UnusableRunError(str(error)) from error
