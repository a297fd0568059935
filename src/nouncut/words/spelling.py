"""Spellings of words, and when two of them are the same word."""

from __future__ import annotations

import unicodedata

# Endings of plurals, and the endings their singulars can have.
_PLURALS = (
    ("men", ("man",)),
    ("mice", ("mouse",)),
    ("geese", ("goose",)),
    ("feet", ("foot",)),
    ("teeth", ("tooth",)),
    ("children", ("child",)),
    ("people", ("person",)),
    ("ves", ("f", "fe", "ve")),
    ("ies", ("y", "ie")),
    ("es", ("", "e")),
    ("s", ("",)),
)
# Words with these endings are singular: glass, bus, iris.
_SINGULARS = ("ss", "us", "is")


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


def singulars(word: str) -> list[str]:
    """Return possible singulars of a word, likelier ones first; some do not exist."""
    if word.endswith(_SINGULARS):
        return []
    found = [
        word.removesuffix(plural) + singular
        for plural, endings in _PLURALS
        if word.endswith(plural)
        for singular in endings
    ]
    return [singular for singular in dict.fromkeys(found) if singular]
