from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.words.backoff import (
    CLASSIFIER,
    NOUNS,
    choose_nodes,
    concept_tree,
    probability_right,
    usual_word,
)
from nouncut.words.evidence import gather_evidence
from nouncut.words.tree import information_bits
from nouncut.words.wordnet import broader_synsets, load_wordnet, synset_rows, synsets_of

WORDS = ("robin", "magpie", "house finch", "beagle", "tabby", "truck", "monastery", "banana")


def senses(words):
    return [synsets_of(word)[0] for word in words]


@pytest.fixture(scope="module")
def tree():
    return concept_tree(senses(WORDS))


def evidence_of(rows):
    """Return evidence of clusters of one image each."""
    rows = np.asarray(rows, dtype=float)
    return gather_evidence(np.arange(len(rows)), len(rows), rows.shape[1], rows.__getitem__)


def chosen_words(rows, tree, calibration=NOUNS):
    nodes = choose_nodes(probability_right(evidence_of(rows), tree, calibration), tree)
    return [None if node < 0 else tree.words[node] for node in nodes]


def test_the_tree_has_everything_above_the_concepts(tree):
    for column, word in enumerate(WORDS):
        found = {tree.synsets[node].id for node in tree.above[[column]].indices}
        assert found == set(broader_synsets(senses([word])))
        assert tree.words[tree.nodes[column]] == usual_word(senses([word])[0])


def test_words_that_wordnet_lacks_are_concepts_without_ancestors():
    tree = concept_tree(["Oatghurt", *senses(["banana"])])
    assert tree.above[[0]].nnz == 1
    assert tree.words[tree.nodes[0]] == "Oatghurt"
    assert chosen_words([[1, 0], [0, 1]], tree) == ["Oatghurt", "banana"]


def test_a_name_is_as_specific_as_the_evidence(tree):
    rows = np.zeros((4, len(WORDS)))
    rows[0, 0] = 1
    rows[1, :2] = 0.5
    rows[2, [0, 3, 4]] = 1 / 3
    rows[3] = 1 / len(WORDS)
    assert chosen_words(rows, tree) == ["robin", "bird", "animal", None]


def test_words_that_say_nothing_are_no_names(tree):
    assert chosen_words(np.eye(len(WORDS))[[5]] / 2 + np.eye(len(WORDS))[[6]] / 2, tree) == [None]
    vague = [node for node, word in enumerate(tree.words) if word in ("artifact", "object")]
    assert len(vague) == 2
    assert (tree.least[vague] > 1).all()


def test_persons_need_more_evidence():
    tree = concept_tree(senses(["bridegroom", "banana"]))
    assert chosen_words([[0.9, 0.1], [0.1, 0.9], [0.97, 0.03]], tree) == [
        None,
        "banana",
        "bridegroom",
    ]


def test_kinds_that_several_clusters_look_like_are_unknown_kinds(tree):
    alone = np.full((3, len(WORDS)), 0.02)
    alone[0, 2], alone[1, 3], alone[2, 5] = 0.86, 0.86, 0.86
    assert chosen_words(alone, tree, CLASSIFIER) == ["house finch", "beagle", "truck"]
    shared = np.full((6, len(WORDS)), 0.05)
    shared[:, 2], shared[:, 0] = 0.45, 0.2
    shared /= shared.sum(axis=1, keepdims=True)
    assert set(chosen_words(shared, tree, CLASSIFIER)) == {"bird"}


def test_the_share_of_known_kinds_raises_and_lowers_all(tree):
    weak = np.full(len(WORDS), 0.05)
    weak[6] = 0.4
    weak /= weak.sum()
    known = 0.96 * np.eye(len(WORDS))[:6] + 0.005
    unknown = np.full((6, len(WORDS)), 1 / len(WORDS))
    node = tree.nodes[6]
    beside_known = probability_right(evidence_of([weak, *known]), tree, CLASSIFIER)[0, node]
    alone = probability_right(evidence_of([weak]), tree, CLASSIFIER)[0, node]
    beside_unknown = probability_right(evidence_of([weak, *unknown]), tree, CLASSIFIER)[0, node]
    assert beside_known > alone > beside_unknown


@given(
    st.lists(
        st.lists(st.floats(0.01, 1), min_size=len(WORDS), max_size=len(WORDS)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([NOUNS, CLASSIFIER]),
)
def test_what_is_above_the_best_concept_is_at_least_as_probable(rows, calibration):
    tree = concept_tree(senses(WORDS))
    rows = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    right = probability_right(evidence_of(rows), tree, calibration)
    assert ((right >= 0) & (right <= 1)).all()
    for cluster, best in enumerate(rows.argmax(axis=1)):
        above = tree.above[[best]].indices
        assert (right[cluster, above] >= right[cluster, tree.nodes[best]] - 1e-12).all()


def test_usual_words_are_those_of_a_frequent_sense():
    conveyance = next(s for s in synsets_of("conveyance") if "transport" in s.words)
    assert usual_word(conveyance) == "transport"
    assert usual_word(synsets_of("dog")[0]) == "dog"


def test_information_falls_from_a_kind_to_everything():
    path = [synsets_of(word)[0].id for word in ("beagle", "dog", "animal", "entity")]
    bits = information_bits()[synset_rows(path)]
    assert (np.diff(bits) < 0).all()
    assert bits[-1] == 0
    assert bits[0] == pytest.approx(np.log2(len(load_wordnet())))
