from __future__ import annotations

import numpy as np
import pytest

from nouncut.words.concepts import choose_senses, find_concepts, pool_narrower
from nouncut.words.wordnet import synsets_of


@pytest.mark.parametrize(
    ("word", "other_words", "lexicon"),
    [
        ("crane", ["flamingo", "spoonbill"], "animal"),
        ("crane", ["derrick", "winch"], "artifact"),
        ("church", ["chapel", "cathedral", "mosque"], "artifact"),
        ("orange", ["lemon", "lime", "grapefruit"], "food"),
    ],
)
def test_the_other_words_decide_the_sense(word, other_words, lexicon):
    chosen = choose_senses([word, *other_words], [1.0] * (1 + len(other_words)))[0]
    assert chosen is not None
    assert chosen.lexicon == lexicon


def test_alone_a_word_has_its_most_frequent_sense():
    assert choose_senses(["crane"], [1.0]) == [synsets_of("crane")[0]]


def test_words_that_wordnet_lacks_have_no_sense_and_change_no_other():
    with_unknown = choose_senses(["Oatghurt", "crane", "heron"], [5.0, 1.0, 1.0])
    assert with_unknown[0] is None
    assert with_unknown[1:] == choose_senses(["crane", "heron"], [1.0, 1.0])


def test_synonyms_are_one_concept_under_the_usual_word():
    words = ["motorcar", "automobile", "car", "bicycle"]
    concepts = find_concepts(words, np.array([[0.3, 0.3, 0.2, 0.1]]))
    assert [words[i] for i in concepts[0].nouns] == ["car", "automobile", "motorcar"]


def test_broader_words_gain_half_at_every_step():
    words = ["spaniel", "sporting dog", "dog", "piano"]
    concepts = find_concepts(words, np.array([[0.5, 0, 0, 0], [0, 0, 0, 0.5]]))
    pooled = np.array([0.8, 0.0, 0.0, 0.2]) @ pool_narrower(concepts, 4)
    by_word = {words[c.nouns[0]]: p for c, p in zip(concepts, pooled, strict=True)}
    assert by_word == pytest.approx({"spaniel": 0.8, "sporting dog": 0.4, "dog": 0.1, "piano": 0.2})
