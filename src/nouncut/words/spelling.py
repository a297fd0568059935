"""Spellings of words, and when two of them are the same word."""

from __future__ import annotations

import unicodedata


def tidy_word(word: str) -> str:
    """Return a word with spaces for underscores, single spaces and composed accents."""
    return " ".join(unicodedata.normalize("NFC", word).replace("_", " ").split())


def fold_word(word: str) -> str:
    """Return a tidy word in lower case, for comparisons."""
    return tidy_word(word).casefold()


def fold_variants(word: str) -> str:
    """Return what "hot dog", "hotdog" and "hot-dogs" have in common."""
    letters = fold_word(word).replace("-", "").replace(" ", "")
    return letters if letters.endswith("ss") else letters.removesuffix("s")
