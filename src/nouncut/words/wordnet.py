"""The nouns of WordNet 3.0: their senses, glosses, synonyms and hypernyms.

``scripts/build_wordnet.py`` builds the table; it is read once, when it is first needed.
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

# WordNet's lexicographer files of nouns: broad topics, one per synset. "Tops" holds the words for
# the topics themselves, such as "animal", "food" and "person".
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
# What a picture can show; the others hold acts, thoughts, amounts and the like.
VISIBLE_LEXICONS = (
    "animal",
    "artifact",
    "body",
    "event",
    "food",
    "object",
    "person",
    "phenomenon",
    "plant",
    "substance",
)


class Synset(NamedTuple):
    """One meaning and the words for it; `ranks` says which sense of each word it is."""

    id: str
    lexicon: str
    is_instance: bool
    words: tuple[str, ...]
    ranks: tuple[int, ...]
    hypernyms: tuple[str, ...]
    gloss: str

    @property
    def word(self) -> str:
        """The most usual of its words."""
        return self.words[0]

    @property
    def definition(self) -> str:
        """The gloss without its examples."""
        return self.gloss.split('; "')[0]


@cache
def load_wordnet() -> Mapping[str, Synset]:
    """Return all noun synsets by id, in WordNet's order."""
    compressed = (files(__package__) / _TABLE).read_bytes()
    lines = lzma.decompress(compressed).decode("ascii").splitlines()
    synsets = (_parse_row(line) for line in lines)
    return MappingProxyType({synset.id: synset for synset in synsets})


def synsets_of(word: str) -> tuple[Synset, ...]:
    """Return the senses of a word, the most frequent first."""
    table = load_wordnet()
    return tuple(table[id_] for id_ in _word_index().get(fold_word(word), ()))


def broader_synsets(synsets: Iterable[Synset], max_steps: int | None = None) -> dict[str, int]:
    """Return the ids of synsets at or above some, with the fewest steps up to each."""
    table = load_wordnet()
    steps = {synset.id: 0 for synset in synsets}
    # Breadth first: the dictionary keeps the order in which synsets are reached, nearest first.
    queue = list(steps)
    for id_ in queue:
        if steps[id_] == max_steps:
            break
        for parent in table[id_].hypernyms:
            if parent not in steps:
                steps[parent] = steps[id_] + 1
                queue.append(parent)
    return steps


def hypernym_path(synset: Synset) -> tuple[Synset, ...]:
    """Return the shortest path from a synset up to "entity", which is above all nouns."""
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
    """Return the steps between two words, up to a synset above both and down, or None."""
    steps = broader_synsets(synsets_of(word))
    other_steps = broader_synsets(synsets_of(other))
    shared = steps.keys() & other_steps.keys()
    return min((steps[id_] + other_steps[id_] for id_ in shared), default=None)


@cache
def _word_index() -> dict[str, tuple[str, ...]]:
    senses: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for synset in load_wordnet().values():
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            senses[word.casefold()].append((rank, synset.id))
    # A synset can contain a word in two spellings, such as "ddC" and "DDC".
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
    # Cached because nearly all are "1" or "1 1".
    return tuple(map(int, ranks.split()))
