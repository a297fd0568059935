from __future__ import annotations

import numpy as np
import pytest

from nouncut.words.backoff import CLASSIFIER, NOUNS
from nouncut.words.concept_names import name_by_concepts
from nouncut.words.evidence import gather_evidence
from nouncut.words.wordnet import synsets_of

WORDS = ("robin", "magpie", "goldfinch", "hotdog", "French loaf", "tench", "truck", "banana")


def concepts(words=WORDS):
    return [synsets_of(word)[0] for word in words]


def names_of(rows, calibration=NOUNS, n_each=1, **options):
    rows = np.asarray(rows, dtype=float)
    labels = np.repeat(np.arange(len(rows)), n_each)
    evidence = gather_evidence(labels, len(rows), rows.shape[1], lambda i: rows[labels[i]])
    return name_by_concepts(evidence, concepts(), calibration=calibration, **options)


def one_of(**shares):
    row = np.zeros(len(WORDS))
    for word, share in shares.items():
        row[WORDS.index(word.replace("_", " "))] = share
    return row


def test_what_is_not_known_is_called_by_what_it_looks_like():
    (name,) = names_of([one_of(hotdog=0.5, truck=0.3, tench=0.2)])
    assert name.name == "like hotdog, truck"
    assert (name.guess, name.gloss) == (True, "")
    assert name.confidence == pytest.approx(0.5)
    assert name.more_words == ("tench",)


def test_a_cluster_that_looks_like_nothing_gets_a_number():
    rows = np.full((2, 8), 0.04)
    rows[0] = one_of(tench=1)
    named, numbered = names_of(rows)
    assert named.name == "tench"
    assert (numbered.name, numbered.confidence, numbered.guess) == ("group 1", 0.0, False)


def test_a_cluster_without_images_gets_a_number():
    evidence = gather_evidence(np.array([0, 2]), 3, 8, lambda i: np.eye(8)[i])
    names = name_by_concepts(evidence, concepts(), calibration=CLASSIFIER)
    assert names[1].name == "group 1"


def test_clusters_that_share_a_word_are_told_apart_by_others():
    rows = [
        one_of(robin=0.5, magpie=0.3, goldfinch=0.2),
        one_of(robin=0.3, magpie=0.6, goldfinch=0.1),
        one_of(tench=1),
    ]
    names = names_of(rows)
    assert [name.name for name in names] == ["bird (like robin)", "bird (like magpie)", "tench"]
    assert not any(name.guess for name in names)
    assert names[0].gloss == names[1].gloss == synsets_of("bird")[0].definition
    assert "magpie" in names[0].more_words


def test_equal_clusters_get_numbers():
    names = names_of([one_of(tench=1)] * 3)
    assert [name.name for name in names] == ["tench", "tench 2", "tench 3"]


@pytest.mark.parametrize("seed", range(5))
def test_names_are_distinct_and_no_word_is_said_twice(seed):
    rows = np.random.default_rng(seed).dirichlet(np.full(8, 0.3), size=20)
    names = names_of(rows, CLASSIFIER)
    assert len({name.name for name in names}) == 20
    for name in names:
        assert 0 <= name.confidence <= 1
        assert len(set(name.more_words)) == len(name.more_words) <= 3
        assert not any(word in name.name for word in name.more_words)


def test_further_words_are_alternatives_and_not_latin():
    tench, truck = names_of([one_of(tench=0.9, robin=0.1), one_of(truck=1)])
    assert tench.more_words == ("robin",)
    assert truck.more_words == ("motortruck",)
    assert names_of([one_of(tench=0.9, robin=0.1)], n_more=0)[0].more_words == ()


def test_names_do_not_depend_on_the_order_of_clusters():
    rows = np.random.default_rng(0).dirichlet(np.full(8, 0.3), size=12)
    order = np.random.default_rng(1).permutation(12)
    names, moved = names_of(rows), names_of(rows[order])
    for place, cluster in enumerate(order):
        if not names[cluster].name.startswith("group") and not names[cluster].name[-1].isdigit():
            assert moved[place].confidence == pytest.approx(names[cluster].confidence)
            assert moved[place].gloss == names[cluster].gloss
