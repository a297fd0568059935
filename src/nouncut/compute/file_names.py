"""Names for files and folders that are valid on Windows, macOS and Linux alike."""

from __future__ import annotations

import re
import unicodedata

from pathvalidate import FileNameSanitizer, FileNameValidator

# Replaces the characters that Windows forbids; `safe_name` looks for device names itself.
_SANITIZER = FileNameSanitizer(
    fs_encoding="utf-8", validator=FileNameValidator(fs_encoding="utf-8", check_reserved=False)
)
_DEVICES = {*FileNameValidator().reserved_keywords, "CONIN$", "CONOUT$"}
# Characters that pathvalidate accepts: control characters beyond ASCII, separators of lines and
# paragraphs, lone surrogates (bytes that are not text), and marks that reverse the reading
# direction, so that "gpj.exe" is shown as "exe.jpg". ASCII's control characters are here as well
# because some count as white space, which is trimmed.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FILE_TYPE = re.compile(r"(?<=.)\.\w{1,8}\Z", re.ASCII | re.DOTALL)


def safe_name(name: str, *, fallback: str, max_bytes: int) -> str:
    """Return a valid name of at most `max_bytes` (up to 255), or `fallback` if nothing remains."""
    visible = _HIDDEN.sub("_", unicodedata.normalize("NFC", name))
    clean = _SANITIZER.sanitize(_shortened(_trimmed(visible), max_bytes), "_")
    if not clean.strip(" ._"):
        return fallback
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    # Windows ignores spaces and suffixes behind the name of a device.
    if clean.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return f"_{_shortened(clean, max_bytes - 1)}"
    return clean


class DistinctNames:
    """Safe names for one folder that differ even where case and accents are ignored."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def add(self, name: str, *, fallback: str) -> str:
        """Return a safe name, with a number if an earlier name is the same: ``cat (2).jpg``."""
        wanted = safe_name(name, fallback=fallback, max_bytes=self._max_bytes)
        key = _folded(wanted)
        chosen = wanted
        while _folded(chosen) in self._taken:
            self._counts[key] = self._counts.get(key, 1) + 1
            chosen = _shortened(wanted, self._max_bytes, f" ({self._counts[key]})")
        self._taken.add(_folded(chosen))
        return chosen


def _shortened(name: str, max_bytes: int, ending: str = "") -> str:
    """Add an ending before the file type, and cut the name before it to `max_bytes` in total."""
    file_type = _FILE_TYPE.search(name)
    suffix = file_type.group() if file_type else ""
    stem = name.removesuffix(suffix)
    max_stem = max(0, max_bytes - len((ending + suffix).encode()))
    cut = stem.encode()[:max_stem].decode("utf-8", "ignore")
    return (cut if cut == stem else _trimmed(cut)) + ending + suffix


def _trimmed(name: str) -> str:
    return re.sub(r"(?<![\s.])[\s.]+\Z", "", name.lstrip())


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
