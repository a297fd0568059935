"""WordNet's tree as vectors: two synsets are close if they share specific ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from nouncut.words.wordnet import hypernym_pairs, load_wordnet


def synset_rows(ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the rows of synsets in the matrix of ancestors."""
    row_of = _row_numbers()
    return np.array([row_of[id_] for id_ in ids], dtype=np.intp)


@cache
def ancestor_vectors() -> csr_array:
    """Return unit rows of all synsets; a column is an ancestor, or the synset itself.

    An ancestor weighs the square root of its information, log(n / descendants), so the inner
    product of two rows is the share of their information that they have in common.
    """
    ancestors = _ancestors()
    n_descendants = np.asarray(ancestors.sum(axis=0))
    information = np.log(ancestors.shape[0] / n_descendants)
    length = np.sqrt(ancestors @ information)
    weights = (
        diags_array(1 / np.maximum(length, 1e-12)) @ ancestors @ diags_array(np.sqrt(information))
    )
    return csr_array(weights)


@cache
def information_bits() -> NDArray[np.float64]:
    """Return the information of all synsets: -log2 of the share of nouns that they cover.

    A synset with two hypernyms counts twice above the place where they meet. That changes one in
    700 values by more than a tenth of a bit, at most by 0.8, and saves the table of all ancestors.
    """
    row_of = _row_numbers()
    pairs = [(row_of[parent], row_of[id_]) for id_, parent in hypernym_pairs()]
    rows, columns = np.array(pairs).T
    n = len(row_of)
    below = csr_array((np.ones(len(pairs)), (rows, columns)), (n, n))
    level = n_covered = np.ones(n)
    while level.any():
        level = below @ level
        n_covered = n_covered + level
    return np.maximum(np.log2(n / n_covered), 0)


def _ancestors() -> csr_array:
    """Return which synsets (columns) are at or above which (rows)."""
    row_of = _row_numbers()
    pairs = [(row_of[id_], row_of[parent]) for id_, parent in hypernym_pairs()]
    rows, columns = np.array(pairs).T
    n = len(row_of)
    reached = csr_array(eye_array(n) + csr_array((np.ones(len(pairs)), (rows, columns)), (n, n)))
    while True:
        # Squaring doubles the number of steps up.
        further = csr_array(reached @ reached)
        further.data[:] = 1
        if further.nnz == reached.nnz:
            return further
        reached = further


@cache
def _row_numbers() -> dict[str, int]:
    return {id_: row for row, id_ in enumerate(load_wordnet())}
