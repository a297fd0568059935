"""The label-leak check: how does the method do when it never hears the names of the classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from nouncut.words.spelling import fold_word

# Endings of plurals and of the singulars they may come from.
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
# Words in these endings are singular: glass, bus, iris.
_SINGULARS = ("ss", "us", "is")


def remove_class_names(nouns: Sequence[str], class_names: Collection[str]) -> NDArray[np.intp]:
    """Return which nouns are not the name of a class.

    The paper rules out that the nouns leak the labels by removing every noun that is a class
    name. Here a noun is a class name also if it differs in case, in underscores or hyphens for
    spaces, or as singular and plural of its last word (regular English plurals and the commonest
    irregular ones). A class name with commas, such as ImageNet's "tench, Tinca tinca", is several
    names. Synonyms and compounds stay: "hound" and "guide dog" where a class is "dog".
    """
    for name, value in (("nouns", nouns), ("class_names", class_names)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list of words, not a text: pass [{value!r}].")
    classes = {_comparable(part) for name in class_names for part in name.split(",")}
    singulars = classes.union(*map(_singulars, classes))
    keys = [_comparable(noun) for noun in nouns]
    kept = [key not in singulars and classes.isdisjoint(_singulars(key)) for key in keys]
    return np.flatnonzero(np.array(kept, dtype=bool))


def _comparable(word: str) -> str:
    return fold_word(word.replace("-", " "))


def _singulars(word: str) -> set[str]:
    """Return what a word may be the plural of; some are no words, and match none."""
    if word.endswith(_SINGULARS):
        return set()
    return {
        word.removesuffix(plural) + singular
        for plural, endings in _PLURALS
        if word.endswith(plural)
        for singular in endings
    } - {""}
