"""The nouns of WordNet 3.0: their senses, glosses, synonyms and hypernyms.

``scripts/build_wordnet.py`` builds the table; it is read once, when it is first needed.
"""

from __future__ import annotations

import lzma
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
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


class _Synsets(Mapping[str, Synset]):
    """Synsets by id; a row of the table is parsed when its synset is first asked for."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = {line.partition("\t")[0]: line for line in lines}
        self._parsed: dict[str, Synset] = {}

    def __getitem__(self, id_: str) -> Synset:
        synset = self._parsed.get(id_)
        if synset is None:
            synset = self._parsed[id_] = _parse_row(self._lines[id_])
        return synset

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


@cache
def load_wordnet() -> Mapping[str, Synset]:
    """Return all noun synsets by id, in WordNet's order."""
    return _Synsets(_table())


def usual_words(lexicons: Collection[str], named_entities: bool) -> Iterator[str]:
    """Yield the most usual word of every synset of some lexicons, without parsing the synsets."""
    for line in _table():
        _, lexicon, instance, words, _ = line.split("\t", 4)
        if lexicon in lexicons and (named_entities or instance == "0"):
            yield words.partition("|")[0]


def hypernym_pairs() -> Iterator[tuple[str, str]]:
    """Yield the ids of all synsets with those right above them, without parsing the synsets."""
    for line in _table():
        id_, _, _, _, _, hypernyms, _ = line.split("\t", 6)
        for parent in hypernyms.split():
            yield id_, parent


def word_senses() -> Iterator[tuple[str, int, str]]:
    """Yield all words with their ranks and the ids of their synsets, without parsing these."""
    for line in _table():
        id_, _, _, words, ranks, _ = line.split("\t", 5)
        for word, rank in zip(words.split("|"), _parse_ranks(ranks), strict=True):
            yield word, rank, id_


def all_glosses() -> str:
    """Return the glosses of all synsets, one per line."""
    return "\n".join(line.rpartition("\t")[2] for line in _table())


def synsets_of(word: str) -> tuple[Synset, ...]:
    """Return the senses of a word, the most frequent first."""
    table, folded = load_wordnet(), fold_word(word)
    found = [table[id_] for id_ in _word_index().get(folded, ())]
    # A synset can contain a word in two spellings, such as "ddC" and "DDC".
    ranked = sorted(
        (rank, synset.id)
        for synset in found
        for own, rank in zip(synset.words, synset.ranks, strict=True)
        if own.casefold() == folded
    )
    return tuple(table[id_] for id_ in dict.fromkeys(id_ for _, id_ in ranked))


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


@cache
def _table() -> list[str]:
    compressed = (files(__package__) / _TABLE).read_bytes()
    return lzma.decompress(compressed).decode("ascii").splitlines()


@cache
def _word_index() -> dict[str, list[str]]:
    """Return the ids of the synsets of every word, in lower case."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in _table():
        id_, _, _, words, _ = line.split("\t", 4)
        for word in words.casefold().split("|"):
            found[word].append(id_)
    return found


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
