"""How words are spelt and when two spellings are the same word."""

from __future__ import annotations

import unicodedata


def tidy_word(word: str) -> str:
    """Return a word in one spelling: underscores as spaces, single spaces, composed accents.

    Parameters
    ----------
    word : str
        A word as someone wrote it.

    Returns
    -------
    str
        The word as an encoder should read it.

    Examples
    --------
    >>> from nouncut.words.spelling import tidy_word
    >>> tidy_word("  Polar_bear ")
    'Polar bear'
    """
    return " ".join(unicodedata.normalize("NFC", word).replace("_", " ").split())


def fold_word(word: str) -> str:
    """Return what all spellings of a word have in common: `tidy_word` without case.

    Parameters
    ----------
    word : str
        A word as someone wrote it.

    Returns
    -------
    str
        A key to compare words by.

    Examples
    --------
    >>> from nouncut.words.spelling import fold_word
    >>> fold_word("polar_bear") == fold_word("Polar  Bear")
    True
    """
    return tidy_word(word).casefold()
