from __future__ import annotations

import numpy as np
import pytest

from nouncut.words.tree import ancestor_vectors
from nouncut.words.wordnet import (
    broader_synsets,
    count_descendants,
    load_wordnet,
    synset_rows,
    synsets_of,
)


def test_columns_are_the_synset_and_all_above_it():
    synset = synsets_of("tench")[0]
    ids = list(load_wordnet())
    found = {ids[column] for column in ancestor_vectors([synset.id]).indices}
    # "entity" is above everything and says nothing.
    entity = synsets_of("entity")[0].id
    assert found | {entity} == set(broader_synsets([synset]))


def test_rows_have_unit_length():
    vectors = ancestor_vectors()
    lengths = np.sqrt(np.asarray((vectors * vectors).sum(axis=1)))
    entity = synset_rows([synsets_of("entity")[0].id])
    np.testing.assert_allclose(np.delete(lengths, entity), 1)


@pytest.mark.parametrize(
    ("word", "near", "far"), [("tench", "goldfish", "sparrow"), ("violin", "cello", "banana")]
)
def test_relatives_share_more(word, near, far):
    vectors = ancestor_vectors([synsets_of(text)[0].id for text in (word, near, far)])
    products = (vectors @ vectors.T).toarray()
    assert products[0, 1] > products[0, 2]
    np.testing.assert_allclose(np.diag(products), 1)


def test_some_rows_are_those_of_all():
    ids = ["n02084071", "n00001740", "n02121620", "n02084071"]
    expected = ancestor_vectors()[synset_rows(ids)]
    np.testing.assert_array_equal(ancestor_vectors(ids).toarray(), expected.toarray())


def test_descendants_agree_with_all_ways_up():
    counts = dict.fromkeys(load_wordnet(), 0)
    for synset in load_wordnet().values():
        for id_ in broader_synsets([synset]):
            counts[id_] += 1
    assert count_descendants() == list(counts.values())
