"""How words are spelt and when two spellings are the same word."""

from __future__ import annotations

import unicodedata


def tidy_word(word: str) -> str:
    """Return a word in one spelling: underscores as spaces, single spaces, composed accents."""
    return " ".join(unicodedata.normalize("NFC", word).replace("_", " ").split())


def fold_word(word: str) -> str:
    """Return what all spellings of a word have in common: `tidy_word` without case."""
    return tidy_word(word).casefold()
