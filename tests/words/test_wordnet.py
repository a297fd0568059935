from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

from nouncut.words.wordnet import (
    LEXICONS,
    VISIBLE_LEXICONS,
    broader_synsets,
    hypernym_path,
    load_wordnet,
    synsets_of,
)


def ways_up(id_):
    """Every path up from a synset, as its last synset and its length."""
    found = [(id_, 0)]
    for parent in load_wordnet()[id_].hypernyms:
        found += [(above, steps + 1) for above, steps in ways_up(parent)]
    return found


def test_published_counts():
    synsets = load_wordnet().values()
    assert len(synsets) == 82_115
    assert len({word.lower() for synset in synsets for word in synset.words}) == 117_798
    assert len({synset.word for synset in synsets}) == 67_893
    assert sum(synset.is_instance for synset in synsets) == 7_730


def test_table_is_consistent():
    table = load_wordnet()
    assert list(table) == sorted(table)
    assert {synset.lexicon for synset in table.values()} == set(LEXICONS)
    assert [s.word for s in table.values() if not s.hypernyms] == ["entity"]
    for id_, synset in table.items():
        assert id_ == synset.id
        assert synset.gloss
        assert len(synset.words) == len(synset.ranks)
        assert all(hypernym in table for hypernym in synset.hypernyms)
        assert all(word and "_" not in word for word in synset.words)


def test_visible_lexicons_are_lexicons():
    assert set(VISIBLE_LEXICONS) < set(LEXICONS)


def test_senses_are_numbered_without_gaps():
    ranks = {}
    for synset in load_wordnet().values():
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            ranks.setdefault(word.lower(), set()).add(rank)
    assert all(found == set(range(1, len(found) + 1)) for found in ranks.values())


def test_table_is_read_only():
    with pytest.raises(TypeError):
        load_wordnet()["n00000000"] = None


def test_licence_travels_with_the_table():
    licence = (files("nouncut.words") / "data" / "WORDNET-LICENSE.txt").read_text()
    assert licence.startswith("This software and database is being provided to you, the LICENSEE")
    assert "WordNet 3.0 Copyright 2006 by Princeton University." in licence
    assert licence.endswith("Princeton University and LICENSEE agrees to preserve same.\n")


def test_senses_come_in_wordnets_order():
    assert synsets_of("dog")[0].id == "n02084071"
    assert [synset.word for synset in synsets_of("dog")] == [
        "dog",
        "frump",
        "dog",
        "cad",
        "frank",
        "pawl",
        "andiron",
    ]


@pytest.mark.parametrize("spelling", ["polar bear", "Polar_Bear", "  POLAR  bear "])
def test_spelling_does_not_matter(spelling):
    assert [synset.word for synset in synsets_of(spelling)] == ["ice bear"]


def test_word_in_two_spellings_is_one_sense():
    (synset,) = synsets_of("ddc")
    assert {"ddC", "DDC"} <= set(synset.words)


def test_unknown_word():
    assert synsets_of("qwertyuiop") == ()


def test_definitions_leave_out_the_examples():
    synset = synsets_of("lemon")[0]
    assert synset.gloss.startswith(synset.definition)
    for synset in load_wordnet().values():
        assert synset.definition
        assert '; "' not in synset.definition


@pytest.mark.parametrize("max_steps", [0, 2, 5, None])
def test_broader_synsets_come_with_their_fewest_steps(max_steps):
    synsets = synsets_of("church")
    expected = {}
    for synset in synsets:
        for id_, steps in ways_up(synset.id):
            if max_steps is None or steps <= max_steps:
                expected[id_] = min(steps, expected.get(id_, steps))
    found = broader_synsets(synsets, max_steps)
    assert found == expected
    assert list(found.values()) == sorted(found.values())


def test_hypernym_path_is_a_shortest_one():
    table = load_wordnet()
    ids = np.random.default_rng(0).choice(list(table), size=300, replace=False)
    for id_ in ids:
        path = hypernym_path(table[str(id_)])
        assert path[0].id == id_
        assert path[-1].word == "entity"
        assert all(b.id in a.hypernyms for a, b in pairwise(path))
        assert len(path) - 1 == min(n for above, n in ways_up(str(id_)) if above == path[-1].id)
