"""The paper's check for label leakage: a vocabulary without the names of the classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.checks import check_choice
from nouncut.errors import ParameterError
from nouncut.words.spelling import fold_word, singulars
from nouncut.words.wordnet import synsets_of

LeakWords = Literal["exact", "related"]


def remove_class_names(
    nouns: Sequence[str], class_names: Collection[str], leak_words: LeakWords = "exact"
) -> NDArray[np.intp]:
    """Return the indices of the nouns that are not the name of a class.

    "exact" removes the names alone, in any case, with hyphens, underscores or spaces. ImageNet's
    "tench, Tinca tinca" is two names. "related" also removes singulars and plurals of names, and
    their synonyms in all senses that WordNet knows ("domestic dog" for "dog"). Compounds
    ("guide dog") stay.
    """
    for name, value in (("nouns", nouns), ("class_names", class_names)):
        if isinstance(value, str):
            raise ParameterError(f"`{name}` must be a list, not a text: pass [{value!r}].")
    check_choice("leak_words", leak_words, get_args(LeakWords))
    parts = {fold_word(part) for name in class_names for part in name.split(",")}
    classes = set(map(_comparable, parts))
    keys = [_comparable(noun) for noun in nouns]
    if leak_words == "exact":
        kept = [key not in classes for key in keys]
    else:
        classes |= _synonyms(parts)
        known = classes.union(*map(singulars, classes))
        kept = [key not in known and classes.isdisjoint(singulars(key)) for key in keys]
    return np.flatnonzero(np.array(kept, dtype=bool))


def _synonyms(words: Iterable[str]) -> set[str]:
    spellings = {spelling for word in words for spelling in (word, *singulars(word))}
    synsets = {synset for spelling in spellings for synset in synsets_of(spelling)}
    return {_comparable(word) for synset in synsets for word in synset.words}


def _comparable(word: str) -> str:
    return fold_word(word.replace("-", " "))
