"""Lines of small text files that people write by hand."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

# A million words of 16 characters; keeps a wrong file, such as a disk image, out of memory.
_MAX_BYTES = 16_000_000


class Line(NamedTuple):
    """A line of a file."""

    number: int
    text: str


def read_lines(path: Path) -> list[Line]:
    r"""Return the lines of a UTF-8 file that are neither blank nor comments."""
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(
            f"{path} has more than {_MAX_BYTES // 1_000_000} MB: it does not look like a list. "
            "Pass a text file with one entry per line."
        )
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = (
        Line(number, _decode(raw, path, number))
        for number, raw in enumerate(content.split(b"\n"), start=1)
    )
    return [line for line in lines if _says_something(line.text)]


def _says_something(text: str) -> bool:
    start = text.lstrip()
    return start != "" and not start.startswith("#")


def _decode(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    # Zeros are valid UTF-8, but stand for UTF-16 or no text at all.
    if "\0" in text:
        raise ValueError(f"{path}, line {number}: not UTF-8 text. Save the file as UTF-8.")
    return text
