"""What a search text asks for: its nouns, and those that it is about."""

from __future__ import annotations

import re
from typing import NamedTuple

from nouncut.words.spelling import fold_word, singulars
from nouncut.words.wordnet import VISIBLE_LEXICONS, Synset, synsets_of

_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[,;]")
# What follows describes the things before: "dogs on grass" are dogs.
_PREPOSITIONS = frozenset(
    ("about", "above", "across", "against", "along", "among", "around", "at", "behind", "below")
    + ("beneath", "beside", "between", "by", "for", "from", "in", "inside", "into", "near", "of")
    + ("off", "on", "onto", "outside", "over", "past", "through", "to", "towards", "under", "upon")
    + ("who", "that", "which", "with", "without", "wearing", "while")
)
_CONJUNCTIONS = frozenset({"and", "or", ",", ";"})
# WordNet has most of these as nouns as well: "a" is a letter. Every image is a photo.
_OTHERS = frozenset(
    ("a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "these", "those")
    + ("some", "any", "all", "is", "are", "was", "were", "be", "it")
    + ("photo", "photos", "picture", "pictures", "image", "images")
)
_LONGEST = 4


class Phrase(NamedTuple):
    """A noun of a text, and its senses that a picture can show."""

    text: str
    senses: tuple[Synset, ...]


class Query(NamedTuple):
    """The nouns of a text, and those of them that it is about."""

    phrases: tuple[Phrase, ...]
    heads: tuple[Phrase, ...]


def read_query(text: str) -> Query:
    """Find the nouns of a text in WordNet; plurals count as their singulars.

    >>> from nouncut.words.queries import read_query
    >>> query = read_query("golden retrievers and cats on green grass")
    >>> [phrase.text for phrase in query.phrases]
    ['golden retriever', 'cat', 'green', 'grass']
    >>> [phrase.text for phrase in query.heads]
    ['golden retriever', 'cat']
    """
    phrases: list[Phrase] = []
    heads: list[Phrase] = []
    last: Phrase | None = None
    is_main, tokens = True, _TOKEN.findall(fold_word(text))
    while tokens:
        if tokens[0] in _PREPOSITIONS | _CONJUNCTIONS | _OTHERS:
            token = tokens.pop(0)
            if token not in _OTHERS and last is not None:
                heads += [last] if is_main else []
                is_main, last = is_main and token in _CONJUNCTIONS, None
            continue
        found, n_tokens = _first_phrase(tokens)
        if found is not None:
            phrases.append(found)
            # The last noun is what a compound is about: a "police car" is a car.
            last = found
        del tokens[:n_tokens]
    if last is not None and is_main:
        heads.append(last)
    return Query(tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(heads)))


def _first_phrase(tokens: list[str]) -> tuple[Phrase | None, int]:
    """Return the longest noun at the start, and how many tokens it has."""
    for n_tokens in range(min(_LONGEST, len(tokens)), 0, -1):
        words = " ".join(tokens[:n_tokens])
        for spelling in (words, *singulars(words)):
            if senses := _visible(synsets_of(spelling)):
                return Phrase(spelling, senses), n_tokens
    return None, 1


def _visible(senses: tuple[Synset, ...]) -> tuple[Synset, ...]:
    return tuple(one for one in senses if one.lexicon in (*VISIBLE_LEXICONS, "Tops"))
