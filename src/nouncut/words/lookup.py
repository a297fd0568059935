"""Finding a name in WordNet, however it is written."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from nouncut.words.spelling import fold_word, singulars
from nouncut.words.wordnet import Synset, load_wordnet, synsets_of, word_senses

# Names do not have articles; a text that has one is a sentence about something.
_ARTICLES = frozenset({"a", "an", "the"})


def find_senses(name: str) -> tuple[Synset, ...]:
    """Return the senses of a name in WordNet, the most frequent first; none for a sentence.

    If WordNet does not have the name, its singular is tried, then a spelling without hyphens and
    apostrophes, then its last words: a "clay-colored sparrow" is a sparrow.
    """
    if senses := synsets_of(name):
        return senses
    words = _loose(name).split()
    if _ARTICLES.intersection(words):
        return ()
    ends = (" ".join(words[first:]) for first in range(len(words)))
    return next((senses for end in ends if (senses := _senses_of_spelling(end))), ())


def _senses_of_spelling(text: str) -> tuple[Synset, ...]:
    for spelling in (text, *singulars(text)):
        if ids := _loose_index().get(spelling):
            table = load_wordnet()
            return tuple(table[id_] for id_ in ids)
    return ()


@cache
def _loose_index() -> dict[str, list[str]]:
    """Return the ids of synsets by the loose spelling of their words, frequent senses first."""
    senses: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for word, rank, id_ in word_senses():
        senses[_loose(word)].append((rank, id_))
    return {
        word: list(dict.fromkeys(id_ for _, id_ in sorted(found))) for word, found in senses.items()
    }


def _loose(text: str) -> str:
    """Return a spelling without case, hyphens, full stops and the 's of names."""
    spaced = fold_word(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("-", " ")
    return " ".join(spaced.replace("'s ", " ").replace("'", "").replace(".", "").split())
