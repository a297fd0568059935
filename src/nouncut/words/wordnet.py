"""The nouns of WordNet 3.0: their senses, glosses, synonyms and hypernyms.

``scripts/build_wordnet.py`` builds the tables; each is read once, when it is first needed.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from nouncut.words.spelling import fold_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLE = "data/wordnet-3.0-nouns.tsv.gz"
_GLOSSES = "data/wordnet-3.0-glosses.txt.gz"
_MENTIONS = "data/wordnet-3.0-mentions.tsv.gz"

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

    @property
    def gloss(self) -> str:
        """What it means, with examples."""
        return _glosses()[_row_numbers()[self.id]]

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

    def __init__(self) -> None:
        self._parsed: dict[str, Synset] = {}

    def __getitem__(self, id_: str) -> Synset:
        synset = self._parsed.get(id_)
        if synset is None:
            synset = self._parsed[id_] = _parse_row(_row_numbers()[id_])
        return synset

    def __iter__(self) -> Iterator[str]:
        return iter(_table().ids)

    def __len__(self) -> int:
        return len(_table().ids)


@cache
def load_wordnet() -> Mapping[str, Synset]:
    """Return all noun synsets by id, in WordNet's order."""
    return _Synsets()


def usual_words(lexicons: Collection[str], named_entities: bool) -> Iterator[str]:
    """Yield the most usual word of every synset of some lexicons, without parsing the synsets."""
    table = _table()
    for lexicon, instance, words in zip(table.lexicons, table.instances, table.words, strict=True):
        if lexicon in lexicons and (named_entities or instance == "0"):
            yield words.partition("|")[0]


def hypernym_rows() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row numbers of synsets, and of those right above each of them."""
    # The help of the command needs no arrays, only names of this module.
    import numpy as np

    synsets, row_of = _table().hypernyms, _row_numbers()
    counts = np.fromiter((hypernyms.count("n") for hypernyms in synsets), np.intp, len(synsets))
    parents = map(row_of.__getitem__, " ".join(synsets).split())
    rows = np.repeat(np.arange(len(synsets)), counts)
    return rows, np.fromiter(parents, np.intp, len(rows))


def count_descendants() -> list[int]:
    """Return how many synsets are at or below each synset."""
    return list(map(int, _table().descendants))


def synset_rows(ids: Iterable[str]) -> list[int]:
    """Return the row numbers of synsets, which are their positions in `load_wordnet`."""
    row_of = _row_numbers()
    return [row_of[id_] for id_ in ids]


def word_senses() -> Iterator[tuple[str, int, str]]:
    """Yield all words with their ranks and the ids of their synsets, without parsing these."""
    table = _table()
    for id_, words, ranks in zip(table.ids, table.words, table.ranks, strict=True):
        for word, rank in zip(words.split("|"), _parse_ranks(ranks), strict=True):
            yield word, rank, id_


@cache
def mentions() -> dict[str, int]:
    """Return how often each word occurs in the glosses of all synsets."""
    words, counts = (line.split("\t") for line in _read(_MENTIONS).split("\n"))
    return dict(zip(words, map(int, counts), strict=True))


def synsets_of(word: str) -> tuple[Synset, ...]:
    """Return the senses of a word, the most frequent first."""
    table, folded = load_wordnet(), fold_word(word)
    # A synset can contain a word in two spellings, such as "ddC" and "DDC".
    ranked = sorted(
        (rank, synset.id)
        for synset in (table[_table().ids[row]] for row in _rows_with(folded))
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


class _Table(NamedTuple):
    """Columns of the table: lists of words, ranks and hypernyms are texts still."""

    ids: list[str]
    lexicons: list[str]
    instances: list[str]
    words: list[str]
    ranks: list[str]
    hypernyms: list[str]
    descendants: list[str]


@cache
def _table() -> _Table:
    return _Table(*(column.split("\t") for column in _read(_TABLE).split("\n")))


@cache
def _glosses() -> list[str]:
    return _read(_GLOSSES).split("\n")


def _read(name: str) -> str:
    return gzip.decompress((files(__package__) / name).read_bytes()).decode("ascii")


@cache
def _row_numbers() -> dict[str, int]:
    return {id_: row for row, id_ in enumerate(_table().ids)}


class _WordIndex(NamedTuple):
    """Hashes of all words in lower case, ascending, and the rows of their synsets.

    A dictionary of lists would take several times as long to build, and few words are looked up.
    """

    hashes: NDArray[np.int64]
    rows: NDArray[np.intp]


@cache
def _word_index() -> _WordIndex:
    import numpy as np

    synsets = _table().words
    counts = np.fromiter((words.count("|") + 1 for words in synsets), np.intp, len(synsets))
    words = "|".join(synsets).casefold().split("|")
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    order = np.argsort(hashes, kind="stable")
    return _WordIndex(hashes[order], np.repeat(np.arange(len(synsets)), counts)[order])


def _rows_with(folded: str) -> list[int]:
    """Return the rows of the synsets with a word, and perhaps others with the same hash."""
    hashes, rows = _word_index()
    first, last = (hashes.searchsorted(hash(folded), side) for side in ("left", "right"))
    return sorted(set(rows[first:last].tolist()))


def _parse_row(row: int) -> Synset:
    table = _table()
    return Synset(
        table.ids[row],
        table.lexicons[row],
        table.instances[row] == "1",
        tuple(table.words[row].split("|")),
        _parse_ranks(table.ranks[row]),
        tuple(table.hypernyms[row].split()),
    )


@cache
def _parse_ranks(ranks: str) -> tuple[int, ...]:
    # Cached because nearly all are "1" or "1 1".
    return tuple(map(int, ranks.split()))
