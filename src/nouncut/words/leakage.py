"""The paper's check for label leakage: a vocabulary without the names of the classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import ParameterError
from nouncut.words.spelling import fold_word, singulars


def remove_class_names(nouns: Sequence[str], class_names: Collection[str]) -> NDArray[np.intp]:
    """Return the indices of the nouns that are not the name of a class.

    Case, hyphens, underscores and the plural of the last word make no difference. ImageNet's
    "tench, Tinca tinca" is two names. Synonyms ("hound" for "dog") and compounds ("guide dog")
    stay.
    """
    for name, value in (("nouns", nouns), ("class_names", class_names)):
        if isinstance(value, str):
            raise ParameterError(f"`{name}` must be a list, not a text: pass [{value!r}].")
    classes = {_comparable(part) for name in class_names for part in name.split(",")}
    known = classes.union(*map(singulars, classes))
    keys = [_comparable(noun) for noun in nouns]
    kept = [key not in known and classes.isdisjoint(singulars(key)) for key in keys]
    return np.flatnonzero(np.array(kept, dtype=bool))


def _comparable(word: str) -> str:
    return fold_word(word.replace("-", " "))
