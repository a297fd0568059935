"""The default vocabulary: WordNet's nouns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from nouncut.errors import ParameterError
from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import LEXICONS, Synset, load_wordnet, usual_words, word_senses

# Filters of `nouncut.words.filters`; here, because that module is slow to import.
NounFilter = Literal["tac", "gradnorm", "none"]


class Noun(NamedTuple):
    """A word and its most frequent sense."""

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
    """Return WordNet's nouns: the most usual word of each synset, each word once.

    Words that differ in case ("march", "March") are distinct.

    Parameters
    ----------
    lexicons : collection of str, optional
        The lexicographer files to take senses from, such as ``["animal", "food"]``; see
        `nouncut.words.wordnet.LEXICONS`. All of them by default.
    named_entities : bool, default=False
        Whether to keep named entities, such as people, cities and rivers.
    stop_words : collection of str, default=()
        Words to leave out, in any case, with spaces or underscores.

    Returns
    -------
    list of Noun
        In WordNet's order. Each has the most frequent of the senses that were kept.

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
        raise ParameterError(f"`stop_words` must be a list, not a text: pass [{stop_words!r}].")
    stopped = {fold_word(word) for word in stop_words}
    kept = [
        synset
        for synset in load_wordnet().values()
        if synset.lexicon in chosen and (named_entities or not synset.is_instance)
    ]
    senses = _first_senses(kept)
    words = dict.fromkeys(synset.word for synset in kept)
    return [
        Noun(word, senses[word].lexicon, senses[word].gloss, senses[word].id)
        for word in words
        if not stopped or fold_word(word) not in stopped
    ]


def noun_words(
    *, lexicons: Collection[str] | None = None, named_entities: bool = False
) -> list[str]:
    """Return the words of `load_nouns`, in less time."""
    return list(dict.fromkeys(usual_words(_check_lexicons(lexicons), named_entities)))


def all_noun_words() -> list[str]:
    """Return all words of all synsets, named entities included, each spelling once.

    WordNet 3.0 pairs 119,034 spellings with synsets in 146,347 ways; TAC's list has all pairs.
    """
    return list(dict.fromkeys(word for word, _, _ in word_senses()))


def _check_lexicons(lexicons: Collection[str] | None) -> frozenset[str]:
    if lexicons is None:
        return frozenset(LEXICONS)
    if isinstance(lexicons, str):
        raise ParameterError(f"`lexicons` must be a list, not a text: pass [{lexicons!r}].")
    unknown = [name for name in lexicons if name not in LEXICONS]
    if unknown or not lexicons:
        problem = f"has unknown names: {', '.join(map(repr, unknown))}" if unknown else "is empty"
        raise ParameterError(f"`lexicons` {problem}. Choose among: {', '.join(LEXICONS)}.")
    return frozenset(lexicons)


def _first_senses(synsets: list[Synset]) -> dict[str, Synset]:
    """Return the most frequent sense of each spelling."""
    ranks: dict[str, int] = {}
    first: dict[str, Synset] = {}
    for synset in synsets:
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            if word not in ranks or rank < ranks[word]:
                ranks[word], first[word] = rank, synset
    return first
