"""``python -m nouncut`` is the installed command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("nouncut")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["--version"], 0), (["cluster", "nowhere"], 3), (["cluster", "--what"], 2)],
    ids=str,
)
def test_the_module_is_the_command(arguments, code, tmp_path):
    ended = [
        subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        for command in ([str(COMMAND)], [sys.executable, "-m", "nouncut"])
    ]
    assert [one.returncode for one in ended] == [code, code]
    assert ended[0].stdout == ended[1].stdout
    assert ended[0].stderr == ended[1].stderr
    assert "nouncut" in ended[1].stdout + ended[1].stderr
    assert "__main__" not in ended[1].stdout + ended[1].stderr
