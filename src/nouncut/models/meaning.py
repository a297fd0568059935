"""The space in which the embedded model compares images with words.

The first part of a vector comes from a table of word vectors, the second from WordNet's tree. The
table knows any text; the tree knows better what things are. Both are relative to the mean of the
classes that the network distinguishes, and have about the same weight: over all pairs of a class
and a noun, the standard deviations of the two inner products differ by a tenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.models.word_table import WordTable
from nouncut.words.lookup import find_senses
from nouncut.words.tree import ancestor_vectors
from nouncut.words.wordnet import load_wordnet

# Ancestors of a single class say no more than the class's own name.
_FEWEST_CLASSES = 2


class MeaningSpace:
    """Vectors of classes and texts; `classes` are ids of synsets."""

    def __init__(self, classes: Sequence[str], words: WordTable) -> None:
        self._synsets = tuple(classes)
        self._words = words

    @cached_property
    def classes(self) -> NDArray[np.float32]:
        """Vectors of the classes, which may be averaged."""
        words = self._class_words - self._class_words.mean(axis=0)
        tree = self._class_tree.toarray() - self._tree_centre
        return np.hstack([words, tree]).astype(np.float32)

    def encode(
        self, texts: Sequence[str], names: Sequence[str] | None = None
    ) -> NDArray[np.float32]:
        """Return unit rows of texts; `names` are what the texts speak of, the texts by default."""
        words = unit_rows(self._words.encode(texts) - self._class_words.mean(axis=0))
        return unit_rows(np.hstack([words, self._encode_tree(texts if names is None else names)]))

    def unknown(self, texts: Sequence[str]) -> list[str]:
        """Return the texts in which neither the tree nor the table knows a word."""
        return [text for text in texts if not find_senses(text) and not self._words.knows(text)]

    def _encode_tree(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return the tree's part of every name: the sense that the classes explain best."""
        senses = [find_senses(name) for name in names]
        counts = np.array([len(found) for found in senses], dtype=np.intp)
        known = np.flatnonzero(counts)
        out = np.zeros((len(names), self._columns.size), dtype=np.float32)
        if known.size:
            ancestors = ancestor_vectors([sense.id for found in senses for sense in found])
            vectors = csr_array(ancestors[:, self._columns])
            best = _largest_of_each(np.asarray((vectors * vectors).sum(axis=1)), counts[known])
            out[known] = vectors[best].toarray() - self._tree_centre
        return out

    @cached_property
    def _class_words(self) -> NDArray[np.float32]:
        table = load_wordnet()
        return self._words.encode([", ".join(table[id_].words) for id_ in self._synsets])

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """Ancestors that several classes share."""
        return np.flatnonzero(np.bincount(self._class_ancestors.indices) >= _FEWEST_CLASSES)

    @cached_property
    def _class_tree(self) -> csr_array:
        return csr_array(self._class_ancestors[:, self._columns])

    @cached_property
    def _class_ancestors(self) -> csr_array:
        return ancestor_vectors(self._synsets)

    @cached_property
    def _tree_centre(self) -> NDArray[np.float64]:
        return np.asarray(self._class_tree.mean(axis=0))


def _largest_of_each(values: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the position of the largest value, the first of equal ones, in consecutive groups."""
    groups = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((np.arange(len(values)), -values, groups))
    return np.asarray(order[np.cumsum(counts) - counts])
