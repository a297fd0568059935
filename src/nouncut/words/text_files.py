"""Lines of text files that people write by hand."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nouncut.errors import InputError, describe_error, printable_path

# A million words of 16 characters. A wrong file, such as a disk image, must not fill the memory.
_MAX_BYTES = 16_000_000


class Line(NamedTuple):
    """A line of a file; the first one has the number 1."""

    number: int
    text: str


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a UTF-8 file that are neither blank nor comments."""
    content = _read_bytes(path)
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = (
        Line(number, _decode(raw, path, number))
        for number, raw in enumerate(content.split(b"\n"), start=1)
    )
    return [line for line in lines if line.text.strip() and line.text.lstrip()[0] != "#"]


def line_error(path: Path, number: int, problem: str) -> InputError:
    """Return an error that names the file and the line."""
    return InputError(f"{printable_path(path)}, line {number}: {problem}")


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{printable_path(path)} cannot be read ({describe_error(error)}). Check its name and "
            "its permissions."
        ) from error
    if len(content) > _MAX_BYTES:
        raise InputError(
            f"{printable_path(path)} has more than {_MAX_BYTES // 1_000_000} MB: it does not look "
            "like a list. Pass a text file with one entry per line."
        )
    return content


def _decode(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise line_error(path, number, "not UTF-8 text. Save the file as UTF-8.") from None
    if "\0" in text:
        raise line_error(
            path,
            number,
            "a NUL character (zero byte), which no text has. Remove it, or save the file as UTF-8 "
            "if it is UTF-16.",
        )
    return text
