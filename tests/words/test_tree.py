from __future__ import annotations

import numpy as np
import pytest

from nouncut.words.tree import ancestor_vectors, synset_rows
from nouncut.words.wordnet import broader_synsets, load_wordnet, synsets_of


def test_columns_are_the_synset_and_all_above_it():
    synset = synsets_of("tench")[0]
    (row,) = synset_rows([synset.id])
    ids = list(load_wordnet())
    found = {ids[column] for column in ancestor_vectors()[[row]].indices}
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
    vectors = ancestor_vectors()[
        synset_rows([synsets_of(text)[0].id for text in (word, near, far)])
    ]
    products = (vectors @ vectors.T).toarray()
    assert products[0, 1] > products[0, 2]
    np.testing.assert_allclose(np.diag(products), 1)
