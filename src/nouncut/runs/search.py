"""Images of a run found by text, by example, and near duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.checks import check_positive
from nouncut.compute.files import AnyPath
from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.models.encoder import Encoder
from nouncut.runs.explain import find_row
from nouncut.runs.tables import table_of
from nouncut.words.backoff import LEAST_BITS
from nouncut.words.parent_names import cluster_senses
from nouncut.words.queries import Phrase, read_query
from nouncut.words.spelling import fold_word
from nouncut.words.tree import information_bits
from nouncut.words.wordnet import broader_synsets, load_wordnet, synset_rows

if TYPE_CHECKING:
    from nouncut.runs.run import Run
    from nouncut.store.store import FeatureStore

# Of photographs that were saved again with less quality, another brightness or cropped edges, 60 to
# 100 % have a larger cosine with the embedded model, on three of four sets; so have few pairs of
# different photographs (`benchmarks/search.py`).
SAME = 0.95
_EDGES_AT_ONCE = 65_536
_ROWS_AT_ONCE = 65_536

FOUND_SCHEMA = pa.schema(
    {
        "path": pa.string(),
        "cluster": pa.int32(),
        "name": pa.string(),
        "score": pa.float32(),
        "by_name": pa.bool_(),
        "row": pa.int32(),
    }
)
DUPLICATES_SCHEMA = pa.schema(
    {
        "group": pa.int32(),
        "path": pa.string(),
        "cluster": pa.int32(),
        "name": pa.string(),
        "similarity": pa.float32(),
        "copy": pa.bool_(),
        "row": pa.int32(),
    }
)


class SearchArrays:
    """The features and the model that searches need: loaded once, and kept whatever is edited."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def load(self) -> None:
        """Load everything, so that no search has to wait for it."""
        _ = self.looks, self.semantic
        self._load_words()

    def _load_words(self) -> None:
        self.encoder.encode_texts(["thing"])
        # A word that is not in WordNet is looked up in other spellings as well.
        self.encoder.unknown_texts(["qqq"])

    def check_texts(self) -> None:
        """Raise an `InputError` if texts cannot be compared with the images."""
        if not self._run.has_array("semantic"):
            raise _without_text(self._run)

    def compare_meaning(self, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every image with the unit vector of a text."""
        return np.asarray(self.semantic @ wanted)

    def compare_looks(self, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every image with the unit row of another one."""
        return np.asarray(self.looks @ wanted)

    def looks_of(self, row: int) -> NDArray[np.float32]:
        """Return the unit row of an image."""
        return np.asarray(self.looks[row])

    @cached_property
    def semantic(self) -> NDArray[np.float32]:
        """The unit rows that are compared with texts."""
        self.check_texts()
        return np.asarray(unit_rows(self._run.array("semantic")), np.float32)

    @cached_property
    def looks(self) -> NDArray[np.float32]:
        """The unit rows that are compared with each other."""
        from nouncut.runs.predict import known_rows

        return known_rows(self._run)

    @cached_property
    def encoder(self) -> Encoder:
        """The model that the run was made with."""
        from nouncut.models.choose import load_encoder

        model = self._run.manifest.get("model") or {}
        if not model.get("name"):
            raise _without_text(self._run)
        encoder = load_encoder(model["name"]).encoder
        if encoder.fingerprint != model["fingerprint"]:
            raise InputError(
                f"{printable_path(self._run.directory)} was made with another version of "
                f"{model['name']}, whose features cannot be compared with this one's. Cluster the "
                "images again."
            )
        return encoder


class PartedSearchArrays(SearchArrays):
    """The same of a large run: features are mapped into memory and compared part by part."""

    def load(self) -> None:
        """Load the model; features stay on the disk."""
        self._load_words()

    def check_texts(self) -> None:
        """Raise an `InputError` if texts cannot be compared with the images."""
        if not (self._run.manifest.get("model") or {}).get("name"):
            raise _without_text(self._run)

    def compare_meaning(self, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every image with the unit vector of a text."""
        # A model whose images and texts share a space compares both by the same rows.
        has_own = self._run._files.has_features("meaning")
        return self._compare("meaning" if has_own else "looks", wanted)

    def compare_looks(self, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every image with the unit row of another one."""
        return self._compare("looks", wanted)

    def looks_of(self, row: int) -> NDArray[np.float32]:
        """Return the unit row of an image."""
        start = 0
        for part in self._run._files.features("looks"):
            if row < start + len(part):
                return np.asarray(part[row - start], np.float32)
            start += len(part)
        raise InputError(f"There is no image {row}.")

    def _compare(self, name: str, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.concatenate(
            [
                np.asarray(part[start : start + _ROWS_AT_ONCE], np.float32) @ wanted
                for part in self._run._files.features(name)
                for start in range(0, len(part), _ROWS_AT_ONCE)
            ]
        )


@dataclass(frozen=True)
class Searcher:
    """Searches the images of a run; the model is loaded by the first search that needs it."""

    run: Run
    store: FeatureStore | None = None

    def by_text(self, text: str, n: int | None = 20) -> pa.Table:
        """Return the images that suit a text best; all of them if `n` is None.

        Images of groups whose name is among what the text is about come first: "dog" finds
        spaniels. Otherwise the cosine of image and text decides.
        """
        scores, is_named = self.compare(text)
        first = best_rows(scores, np.flatnonzero(is_named), n)
        rest = None if n is None else n - len(first)
        order = np.concatenate([first, best_rows(scores, np.flatnonzero(~is_named), rest)])
        return self._found(order, scores, is_named)

    def compare(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the cosine of every image with a text, and whether its group's name suits it."""
        query = read_query(text)
        arrays = self.run.search_arrays
        arrays.check_texts()
        scores = arrays.compare_meaning(self._encode(text, query.phrases))
        return scores, np.isin(self.run.labels, self._named(text, query.heads))

    def like(self, image: AnyPath | int, n: int | None = 20) -> pa.Table:
        """Return the images that look most like one of the run, or like a new file."""
        try:
            row = find_row(self.run, image)
            wanted = self.run.search_arrays.looks_of(row)
        except InputError:
            if isinstance(image, int | np.integer) or not Path(image).is_file():
                raise
            row, wanted = -1, self._new_looks(image)
        scores = self.run.search_arrays.compare_looks(wanted)
        every = np.arange(len(scores))
        order = best_rows(scores, every[every != row], n)
        return self._found(order, scores, np.zeros(len(scores), bool))

    def _new_looks(self, file: AnyPath) -> NDArray[np.float32]:
        """Return the unit row of an image file."""
        from nouncut.runs.predict import new_rows

        rows = new_rows(self.run, [file], self.store)
        if len(rows) != 1:
            raise InputError(f"{printable_path(file)} is not one image. Pass an image file.")
        return np.asarray(rows[0])

    def _found(
        self, rows: NDArray[np.intp], scores: NDArray[Any], is_named: NDArray[np.bool_]
    ) -> pa.Table:
        about = self.run.take_assignments(rows).select(["path", "cluster", "name"])
        columns = {name: about[name].combine_chunks() for name in about.column_names}
        more = {"score": scores[rows], "by_name": is_named[rows], "row": rows}
        return table_of(columns | more, FOUND_SCHEMA)

    def _encode(self, text: str, phrases: tuple[Phrase, ...]) -> NDArray[np.float32]:
        """Return the unit vector of a text."""
        if not text.strip():
            raise ParameterError("The text is empty. Say what to search for.")
        encoder = self.run.search_arrays.encoder
        # A model of single words is asked for each noun.
        texts = [text] if encoder.shares_space or not phrases else [one.text for one in phrases]
        if len(encoder.unknown_texts(texts)) == len(texts):
            raise InputError(
                f"{encoder.name} knows no word of {printable_path(text)}. Use other words."
            )
        mean = encoder.encode_texts(texts).mean(axis=0, keepdims=True)
        return np.asarray(unit_rows(mean)[0])

    def groups_about(self, text: str) -> list[int]:
        """Return the groups whose names hold a text, or fall under its nouns."""
        return self._named(text, read_query(text).heads)

    def _named(self, text: str, heads: tuple[Phrase, ...]) -> list[int]:
        wanted = {sense.id for head in heads for sense in head.senses}
        words = {f" {word} " for word in (fold_word(text), *(head.text for head in heads))}
        rows = self.run.clusters.select(["cluster", "name", "gloss", "guess"]).to_pylist()
        numbers = []
        for row in rows:
            name = f" {fold_word(row['name'].partition(' (like ')[0])} "
            suits = wanted & _synsets_above(row["name"], row["gloss"] or "")
            if not row["guess"] and (suits or any(word in name for word in words)):
                numbers.append(row["cluster"])
        return numbers


def best_rows(scores: NDArray[Any], rows: NDArray[np.intp], n: int | None) -> NDArray[np.intp]:
    """Return the `n` of some ascending rows with the largest scores, the largest first.

    Only these are sorted. Of equal scores, the first row comes first.
    """
    if n is not None and n < len(rows):
        own = scores[rows]
        least = np.partition(own, len(own) - n)[len(own) - n] if n else np.inf
        above, equal = rows[own > least], rows[own == least]
        rows = np.sort(np.concatenate([above, equal[: n - len(above)]]))
    return np.asarray(rows[np.argsort(-scores[rows], kind="stable")])


def find_duplicates(run: Run, threshold: float = SAME) -> pa.Table:
    """Return groups of images that are the same or nearly so; see `Run.duplicates`."""
    if not 0 < threshold <= 1:
        raise ParameterError(f"`threshold` must be above 0 and at most 1; got {threshold}.")
    if run.is_large:
        from nouncut.runs.sample import need_all_images

        need_all_images(run, "Finding duplicates")
    if run.has_array("view_basis"):
        raise InputError(
            f"The run in {printable_path(run.directory)} compares images by words, but duplicates "
            "look alike. Cluster the images again with `compare` set to looks."
        )
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from nouncut.runs.predict import known_rows

    contents = _contents(run)
    rows, columns, cosines = _close_pairs(run, known_rows(run), threshold)
    first = np.unique(contents, return_index=True)[1]
    originals = first[contents]
    copies = np.arange(len(contents)), originals
    pairs = np.concatenate([rows, copies[0]]), np.concatenate([columns, copies[1]])
    links = coo_array((np.ones(len(pairs[0])), pairs), (len(contents),) * 2)
    groups = connected_components(links, directed=False)[1]
    best = np.zeros(len(contents))
    np.maximum.at(best, np.concatenate([rows, columns]), np.tile(cosines, 2))
    is_copy = np.bincount(contents)[contents] > 1
    best[is_copy] = 1
    return _duplicates_table(run, groups, best, is_copy)


def _contents(run: Run) -> NDArray[np.intp]:
    """Return equal numbers for files with equal content."""
    hashes = run.images["hash"].slice(0, len(run.assignments)).to_pylist()
    keys = [f"row {row}" if one is None else one for row, one in enumerate(hashes)]
    return np.unique(keys, return_inverse=True)[1]


def _close_pairs(
    run: Run, looks: NDArray[np.float32], threshold: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """Return pairs of neighbours in the graph with a cosine of at least `threshold`."""
    graph = run.graph().tocoo()
    upper = graph.coords[0] < graph.coords[1]
    rows, columns = (axis[upper].astype(np.intp) for axis in graph.coords)
    cosines = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _EDGES_AT_ONCE):
        part = slice(start, start + _EDGES_AT_ONCE)
        cosines[part] = np.einsum("ij,ij->i", looks[rows[part]], looks[columns[part]])
    near = cosines >= threshold
    return rows[near], columns[near], np.minimum(cosines[near], 1)


def _duplicates_table(
    run: Run, groups: NDArray[Any], best: NDArray[Any], is_copy: NDArray[np.bool_]
) -> pa.Table:
    """Return the images of groups of at least two, the largest groups first."""
    sizes = np.bincount(groups)[groups]
    several = np.flatnonzero(sizes > 1)
    rows = several[np.lexsort((several, groups[several], -sizes[several]))]
    _, first, inverse = np.unique(groups[rows], return_index=True, return_inverse=True)
    about = run.assignments.select(["path", "cluster", "name"]).take(rows)
    columns = {name: about[name].combine_chunks() for name in about.column_names}
    more = {
        "group": np.argsort(np.argsort(first))[inverse] if len(rows) else rows,
        "similarity": best[rows],
        "copy": is_copy[rows],
        "row": rows,
    }
    return table_of(columns | more, DUPLICATES_SCHEMA)


@lru_cache(maxsize=10_000)
def _synsets_above(name: str, gloss: str) -> frozenset[str]:
    """Return the ids of the synsets at or above the name of a cluster."""
    return frozenset(broader_synsets(cluster_senses(name, gloss).synsets))


def family_words(name: str, gloss: str) -> tuple[str, ...]:
    """Return the words at or above the name of a cluster that say something: "dog", "animal"."""
    ids = list(_synsets_above(name, gloss))
    if not ids:
        return ()
    table, telling = load_wordnet(), information_bits()[synset_rows(ids)] >= LEAST_BITS
    synsets = (table[id_] for id_, tells in zip(ids, telling, strict=True) if tells)
    return tuple(sorted({fold_word(word) for synset in synsets for word in synset.words}))


def check_count(n: int | None) -> None:
    """Raise unless a number of results is whole and positive, or None for all."""
    if n is not None:
        check_positive({"n": n}, Integral)


def _without_text(run: Run) -> InputError:
    return InputError(
        f"The run in {printable_path(run.directory)} was made without a model that reads texts, so "
        "it cannot be searched by text. Search by an example image, or cluster the images again "
        "with a `model`."
    )
