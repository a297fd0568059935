"""What a search text asks for: its nouns, and those that it is about."""

from __future__ import annotations

import re
from typing import NamedTuple

from nouncut.words.spelling import fold_word, singulars
from nouncut.words.wordnet import VISIBLE_LEXICONS, Synset, synsets_of

_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[,;]")
# What follows describes the things before: "dogs on grass" are dogs.
_PREPOSITIONS = re.compile(
    "about|above|across|against|along|among|around|at|behind|below|beneath|beside|between|by|for|"
    "from|in|inside|into|near|of|off|on|onto|outside|over|past|through|to|towards|under|upon|"
    "who|that|which|with|without|wearing|while"
)
_CONJUNCTIONS = re.compile("and|or|,|;")
# WordNet has most of these as nouns as well: "a" is a letter. Every image is a photo.
_OTHERS = re.compile(
    "a|an|the|my|your|his|her|its|our|their|this|these|those|some|any|all|is|are|was|were|be|it|"
    "photos?|pictures?|images?"
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
        if _OTHERS.fullmatch(tokens[0]):
            del tokens[0]
        elif (joins := _CONJUNCTIONS.fullmatch(tokens[0])) or _PREPOSITIONS.fullmatch(tokens[0]):
            heads += [last] if last is not None and is_main else []
            is_main, last = is_main and (bool(joins) or not phrases), None
            del tokens[0]
        else:
            found, n_tokens = _first_phrase(tokens)
            # The last noun is what a compound is about: a "police car" is a car.
            last = found or last
            phrases += [found] if found is not None else []
            del tokens[:n_tokens]
    if last is not None and is_main:
        heads.append(last)
    return Query(tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(heads)))


def _first_phrase(tokens: list[str]) -> tuple[Phrase | None, int]:
    """Return the longest noun at the start, and how many tokens it has."""
    for n_tokens in range(min(_LONGEST, len(tokens)), 0, -1):
        words = " ".join(tokens[:n_tokens])
        for spelling in (words, *singulars(words)):
            # Without its ending, the last word may be empty.
            if spelling.endswith(" "):
                continue
            if senses := _visible(synsets_of(spelling)):
                return Phrase(spelling, senses), n_tokens
    return None, 1


def _visible(senses: tuple[Synset, ...]) -> tuple[Synset, ...]:
    return tuple(one for one in senses if one.lexicon in (*VISIBLE_LEXICONS, "Tops"))
