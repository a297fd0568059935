"""Foreseen errors end with a sentence and a code, others with their traceback."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut.cli.exit_codes import INTERRUPTED, explained_errors, for_command_line
from nouncut.errors import (
    ImageError,
    InputError,
    LowMemoryError,
    ModelError,
    NouncutError,
    OutputError,
    ParameterError,
)
from nouncut.runs.settings import declarations


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NouncutError("It failed."), 1),
        (ParameterError("`tau` must be positive."), 2),
        (InputError("There are no images."), 3),
        (ImageError("a.jpg", "the file is empty"), 3),
        (ModelError("There is no such model."), 4),
        (OutputError("The disk is full."), 5),
        (LowMemoryError("This run needs 9 GB."), 6),
    ],
)
def test_the_code_follows_from_the_error(error, code, capsys):
    with pytest.raises(SystemExit) as ended, explained_errors():
        raise error
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert said == f"nouncut: {for_command_line(str(error))}\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libscipy.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_lack_of_memory_is_named_even_if_it_looks_like_another_error(error, capsys):
    def wrap():
        raise ModelError("Download it again.") from error

    def pass_on():
        raise error

    for fail in (wrap, pass_on):
        with pytest.raises(SystemExit) as ended, explained_errors():
            fail()
        assert ended.value.code == 6
        assert capsys.readouterr().err.startswith("nouncut: Not enough memory (")


def test_an_unforeseen_error_passes_through():
    with pytest.raises(ValueError, match="broadcast"), explained_errors():
        np.zeros(2) + np.zeros(3)


def test_an_interruption_says_how_to_continue(capsys):
    with pytest.raises(SystemExit) as ended, explained_errors("Repeat the command to continue."):
        raise KeyboardInterrupt
    assert ended.value.code == INTERRUPTED
    assert "Interrupted. Repeat the command to continue." in capsys.readouterr().err


def test_parameters_become_options():
    for name, declaration in declarations().items():
        assert for_command_line(f"`{name}` is wrong") == f"{declaration.flags[0]} is wrong"
    assert for_command_line("pass `replace=True`") == "pass --replace"
    assert for_command_line("run `nouncut cache check`") == "run `nouncut cache check`"
