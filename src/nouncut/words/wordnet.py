"""The nouns of WordNet 3.0: their senses, glosses, synonyms and hypernyms.

The table is package data, built by ``scripts/build_wordnet.py``, read at first use and kept.
"""

from __future__ import annotations

import lzma
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from nouncut.words.spelling import fold_word

_TABLE = "data/wordnet-3.0-nouns.tsv.xz"

LEXICONS = (
    "Tops",
    "act",
    "animal",
    "artifact",
    "attribute",
    "body",
    "cognition",
    "communication",
    "event",
    "feeling",
    "food",
    "group",
    "location",
    "motive",
    "object",
    "person",
    "phenomenon",
    "plant",
    "possession",
    "process",
    "quantity",
    "relation",
    "shape",
    "state",
    "substance",
    "time",
)
"""WordNet's lexicographer files of nouns: broad topics, one for every synset.

"Tops" holds the words for the topics themselves, such as "animal", "food" and "person".
"""


class Synset(NamedTuple):
    """One meaning and the words for it."""

    id: str
    lexicon: str
    is_instance: bool
    words: tuple[str, ...]
    ranks: tuple[int, ...]
    hypernyms: tuple[str, ...]
    gloss: str

    @property
    def word(self) -> str:
        """The usual word."""
        return self.words[0]


@cache
def load_wordnet() -> Mapping[str, Synset]:
    """Return all noun synsets by id, in WordNet's order."""
    compressed = (files(__package__) / _TABLE).read_bytes()
    lines = lzma.decompress(compressed).decode("ascii").splitlines()
    synsets = (_parse_row(line) for line in lines)
    return MappingProxyType({synset.id: synset for synset in synsets})


def synsets_of(word: str) -> tuple[Synset, ...]:
    """Return the meanings of a word, the most frequent first."""
    table = load_wordnet()
    return tuple(table[id_] for id_ in _word_index().get(fold_word(word), ()))


def synonyms(word: str) -> tuple[str, ...]:
    """Return the other words for any meaning of a word."""
    words = dict.fromkeys(other for synset in synsets_of(word) for other in synset.words)
    return tuple(other for other in words if fold_word(other) != fold_word(word))


def hypernym_path(synset: Synset) -> tuple[Synset, ...]:
    """Return the shortest way from a synset up to "entity", which is above all nouns."""
    table = load_wordnet()
    paths: list[tuple[Synset, ...]] = [(synset,)]
    seen = {synset.id}
    # Breadth first, so the first path to arrive is a shortest one.
    for path in paths:
        if not path[-1].hypernyms:
            return path
        for id_ in path[-1].hypernyms:
            if id_ not in seen:
                seen.add(id_)
                paths.append((*path, table[id_]))
    raise AssertionError("WordNet's hypernyms have no cycles.")


def hypernym_steps(word: str, other: str) -> int | None:
    """Return how many steps of the hypernym tree lie between two words.

    A step leads from a synset to a broader one or back. The way goes up from one word to the
    nearest synset above both, then down to the other; over all meanings of both words the
    shortest way counts.
    """
    heights = _heights(synset.id for synset in synsets_of(word))
    other_heights = _heights(synset.id for synset in synsets_of(other))
    shared = heights.keys() & other_heights.keys()
    return min((heights[id_] + other_heights[id_] for id_ in shared), default=None)


def _heights(ids: Iterable[str]) -> dict[str, int]:
    """Return every synset at or above the given ones, with the fewest steps up to it."""
    table = load_wordnet()
    heights = dict.fromkeys(ids, 0)
    # Breadth first: a dictionary keeps the order in which synsets are reached.
    queue = list(heights)
    for id_ in queue:
        for parent in table[id_].hypernyms:
            if parent not in heights:
                heights[parent] = heights[id_] + 1
                queue.append(parent)
    return heights


@cache
def _word_index() -> dict[str, tuple[str, ...]]:
    senses: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for synset in load_wordnet().values():
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            senses[word.casefold()].append((rank, synset.id))
    # A synset may hold a word in two spellings, as "ddC" and "DDC".
    return {
        word: tuple(dict.fromkeys(id_ for _, id_ in sorted(ranked)))
        for word, ranked in senses.items()
    }


def _parse_row(line: str) -> Synset:
    id_, lexicon, instance, words, ranks, hypernyms, gloss = line.split("\t")
    return Synset(
        id_,
        lexicon,
        instance == "1",
        tuple(words.split("|")),
        _parse_ranks(ranks),
        tuple(hypernyms.split()),
        gloss,
    )


@cache
def _parse_ranks(ranks: str) -> tuple[int, ...]:
    # Cached, because nearly all are "1" or "1 1".
    return tuple(map(int, ranks.split()))
