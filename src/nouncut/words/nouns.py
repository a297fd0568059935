"""The nouns that images are compared with."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import LEXICONS, Synset, load_wordnet


class Noun(NamedTuple):
    """A word and its most frequent meaning."""

    word: str
    lexicon: str
    gloss: str
    synset: str


def load_nouns(
    *,
    lexicons: Collection[str] | None = None,
    named_entities: bool = False,
    stop_words: Collection[str] = (),
) -> list[Noun]:
    """Return WordNet's nouns: the usual word of every synset, each word once.

    Words that differ in case only ("march", "March") are distinct. All 82,115 synsets have
    67,893 distinct usual words; without named entities 61,389 are left.

    Parameters
    ----------
    lexicons : collection of str, optional
        Keep the meanings of these lexicographer files only, such as ``["animal", "food"]``; see
        `LEXICONS` for their names. All of them by default.
    named_entities : bool, default=False
        Whether to keep named entities, such as persons, cities and rivers.
    stop_words : collection of str, default=()
        Words to leave out; case does not matter, and underscores count as spaces.

    Returns
    -------
    list of Noun
        In WordNet's order. The meaning of a word is its most frequent one among those kept.

    Examples
    --------
    >>> from nouncut.words.nouns import load_nouns
    >>> len(load_nouns())
    61389
    >>> [noun.word for noun in load_nouns(lexicons=["motive"], stop_words=["Life"])[:3]]
    ['rational motive', 'reason', 'occasion']
    """
    chosen = _check_lexicons(lexicons)
    if isinstance(stop_words, str):
        raise TypeError(f"stop_words must be a list of words, not a text: pass [{stop_words!r}].")
    stopped = {fold_word(word) for word in stop_words}
    kept = [
        synset
        for synset in load_wordnet().values()
        if synset.lexicon in chosen and (named_entities or not synset.is_instance)
    ]
    meanings = _first_senses(kept)
    words = dict.fromkeys(synset.word for synset in kept)
    return [
        Noun(word, meanings[word].lexicon, meanings[word].gloss, meanings[word].id)
        for word in words
        if not stopped or fold_word(word) not in stopped
    ]


def _check_lexicons(lexicons: Collection[str] | None) -> frozenset[str]:
    if lexicons is None:
        return frozenset(LEXICONS)
    if isinstance(lexicons, str):
        raise TypeError(f"lexicons must be a list of names, not a text: pass [{lexicons!r}].")
    unknown = [name for name in lexicons if name not in LEXICONS]
    if unknown or not lexicons:
        problem = f"does not know {', '.join(map(repr, unknown))}" if unknown else "is empty"
        raise ValueError(f"lexicons {problem}. Choose among: {', '.join(LEXICONS)}.")
    return frozenset(lexicons)


def _first_senses(synsets: list[Synset]) -> dict[str, Synset]:
    """Return the most frequent meaning of every word as it is spelt, among some synsets."""
    ranks: dict[str, int] = {}
    first: dict[str, Synset] = {}
    for synset in synsets:
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            if word not in ranks or rank < ranks[word]:
                ranks[word], first[word] = rank, synset
    return first
