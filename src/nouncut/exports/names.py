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
    """Return a file or folder name that is safe on every system.

    Parameters
    ----------
    name : str
        Any text.
    fallback : str
        The name where nothing is left of `name`.
    max_bytes : int
        The length it may have in UTF-8. The ending after the last dot is kept where it is short.

    Returns
    -------
    str
        The name: never empty, no path, not hidden.

    Examples
    --------
    >>> from nouncut.exports.names import safe_name
    >>> names = ("AC/DC", "..", "con", "a" * 20 + ".png")
    >>> [safe_name(name, fallback="0", max_bytes=12) for name in names]
    ['AC_DC', '0', '_con', 'aaaaaaa.png']
    """
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
    """Cut a name in its middle, so that it keeps its ending.

    Parameters
    ----------
    name : str
        The name.
    max_bytes : int
        The length it may have in UTF-8.
    ending : str, optional
        Added before the suffix.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> from nouncut.exports.names import shortened
    >>> shortened("cat.jpg", 30, " (2)"), shortened("a long name.jpg", 12, " (2)")
    ('cat (2).jpg', 'a lo (2).jpg')
    """
    stem, suffix = split_suffix(name)
    room = max_bytes - len((ending + suffix).encode())
    cut = stem.encode()[:room].decode("utf-8", "ignore")
    # A cut may lay bare a space at the end.
    return (cut if cut == stem else cut.rstrip(" .")) + ending + suffix


def split_suffix(name: str) -> tuple[str, str]:
    """Split a name before its last dot, if what follows is short enough for a file type.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    stem, suffix : str
        Together the name.

    Examples
    --------
    >>> from nouncut.exports.names import split_suffix
    >>> split_suffix("cat.jpg"), split_suffix("Mr. Somebody's dog")
    (('cat', '.jpg'), ("Mr. Somebody's dog", ''))
    """
    match = re.search(r"(?<=.)\.\w{1,8}$", name, re.DOTALL)
    return (name[: match.start()], match.group()) if match else (name, "")


class DistinctNames:
    """Names for one folder, different from each other on every system.

    Parameters
    ----------
    max_bytes : int
        The length a name may have in UTF-8.

    Examples
    --------
    >>> from nouncut.exports.names import DistinctNames
    >>> distinct = DistinctNames(max_bytes=100)
    >>> [distinct.name(n) for n in ("Cat.jpg", "cat.jpg", "cat (2).jpg", "dog.jpg")]
    ['Cat.jpg', 'cat (2).jpg', 'cat (2) (2).jpg', 'dog.jpg']
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """Return a name, with a number if it was given before.

        Parameters
        ----------
        wanted : str
            A safe name.

        Returns
        -------
        str
            The name.
        """
        key = _folded(wanted)
        given = wanted
        while _folded(given) in self._taken:
            self._repeats[key] = self._repeats.get(key, 1) + 1
            given = shortened(wanted, self._max_bytes, f" ({self._repeats[key]})")
        self._taken.add(_folded(given))
        return given


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
