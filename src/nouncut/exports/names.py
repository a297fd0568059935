r"""File names that are safe on every system.

Windows is the strictest: it forbids ``<>:"/\|?*``, control characters, dots and spaces at the end
and the names of devices; most systems take ``Cat`` and ``cat`` for the same file, and macOS takes
composed and decomposed accents for the same.
"""

from __future__ import annotations

import re
import unicodedata

_FORBIDDEN = set('<>:"/\\|?*')
# Controls, lone surrogates (bytes that are no text), and line and paragraph separators.
_FORBIDDEN_KINDS = {"Cc", "Cs", "Zl", "Zp"}
# They turn the reading direction, so that "gpj.exe" can be shown as "exe.jpg".
_DIRECTION_MARKS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]|conin\$|conout\$) *(\.|$)", re.IGNORECASE)


def safe_name(name: str, *, fallback: str, max_bytes: int) -> str:
    """Return a file or folder name that is safe on every system."""
    composed = unicodedata.normalize("NFC", name)
    clean = "".join("_" if _is_forbidden(character) else character for character in composed)
    if not clean.strip(" ._"):
        return fallback
    clean = clean.strip().rstrip(" .")
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    clean = shortened(clean, max_bytes - 1)
    return f"_{clean}" if _DEVICE.match(clean) else clean


def _is_forbidden(character: str) -> bool:
    return (
        character in _FORBIDDEN
        or character in _DIRECTION_MARKS
        or unicodedata.category(character) in _FORBIDDEN_KINDS
    )


def shortened(name: str, max_bytes: int, ending: str = "") -> str:
    """Cut a name in its middle, so that it keeps its ending."""
    stem, suffix = split_suffix(name)
    room = max_bytes - len((ending + suffix).encode())
    cut = stem.encode()[:room].decode("utf-8", "ignore")
    # A cut may lay bare a space at the end.
    return (cut if cut == stem else cut.rstrip(" .")) + ending + suffix


def split_suffix(name: str) -> tuple[str, str]:
    """Split a name before its last dot, if what follows is short enough for a file type."""
    match = re.search(r"(?<=.)\.\w{1,8}$", name, re.DOTALL)
    return (name[: match.start()], match.group()) if match else (name, "")


class DistinctNames:
    """Names for one folder, different from each other on every system."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """Return a name, with a number if it was given before."""
        key = _folded(wanted)
        given = wanted
        while _folded(given) in self._taken:
            self._repeats[key] = self._repeats.get(key, 1) + 1
            given = shortened(wanted, self._max_bytes, f" ({self._repeats[key]})")
        self._taken.add(_folded(given))
        return given


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
