"""WordNet's tree as vectors: two synsets are close if they share specific ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from nouncut.words.wordnet import count_descendants, hypernym_rows, load_wordnet, synset_rows


def ancestor_vectors(ids: Sequence[str] | None = None) -> csr_array:
    """Return unit rows of synsets, by default all; a column is an ancestor, or the synset itself.

    An ancestor weighs the square root of its information, log(n / descendants), so the inner
    product of two rows is the share of their information that they have in common.
    """
    upward = _one_step_up()
    ancestors = _reachable(upward if ids is None else upward[synset_rows(ids)], upward)
    information = _information()
    length = np.sqrt(ancestors @ information)
    weights = (
        diags_array(1 / np.maximum(length, 1e-12)) @ ancestors @ diags_array(np.sqrt(information))
    )
    return csr_array(weights)


@cache
def information_bits() -> NDArray[np.float64]:
    """Return the information of all synsets: -log2 of the share of nouns that they cover."""
    n_covered = np.array(count_descendants())
    return np.asarray(np.log2(len(n_covered) / n_covered))


@cache
def _information() -> NDArray[np.float64]:
    """Return the information of all synsets in nats."""
    n_covered = np.array(count_descendants())
    return np.asarray(np.log(len(n_covered) / n_covered))


def _reachable(reached: csr_array, upward: csr_array) -> csr_array:
    """Return which synsets (columns) are at or above those that each row has reached."""
    while True:
        further = csr_array(reached @ upward)
        further.data[:] = 1
        if further.nnz == reached.nnz:
            return further
        reached = further


@cache
def _one_step_up() -> csr_array:
    """Return which synsets (columns) are the same as a synset (row), or right above it."""
    rows, parents = hypernym_rows()
    n = len(load_wordnet())
    same = np.arange(n)
    pairs = np.concatenate([same, rows]), np.concatenate([same, parents])
    return csr_array((np.ones(len(pairs[0])), pairs), (n, n))
