"""Names of groups of clusters cover all of them, and differ."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.models.efficientnet import class_synsets
from nouncut.words.backoff import usual_word
from nouncut.words.cluster_names import group_name
from nouncut.words.parent_names import ClusterSenses, cluster_senses, name_parents
from nouncut.words.wordnet import broader_synsets, load_wordnet, synsets_of

KNOWN = [load_wordnet()[id_] for id_ in class_synsets()[::7]]


def named(groups, names, **details):
    return name_parents(groups, names, [cluster_senses(name, **details) for name in names])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(KNOWN), min_size=2, max_size=9), st.randoms())
def test_a_name_covers_every_cluster_and_no_two_are_equal(synsets, random):
    names = [f"{usual_word(synset)} of {number}" for number, synset in enumerate(synsets)]
    senses = [ClusterSenses((synset,)) for synset in synsets]
    groups = [random.sample(range(len(names)), random.randint(2, len(names))) for _ in range(4)]
    groups = list({tuple(sorted(group)) for group in groups})
    found = name_parents(groups, names, senses)
    for group, parent in zip(groups, found, strict=True):
        if parent.synset is not None:
            assert all(parent.synset.id in broader_synsets([synsets[c]]) for c in group)
    assert len({parent.name for parent in found}) == len(groups)


def test_the_word_is_as_specific_as_it_can_be():
    names = ["beagle", "whippet", "tabby", "lemon"]
    found = named([[0, 1], [0, 1, 2], [0, 1, 2, 3]], names)
    assert [parent.name for parent in found] == [
        "dog",
        "domestic animal",
        "beagle, whippet and 2 more",
    ]
    assert found[2].synset is None


def test_groups_that_share_a_word_show_what_differs():
    names = [
        "bird (like jay, magpie)",
        "bird (like jay)",
        "bird (like drake)",
        "bird (like drake, goose)",
    ]
    gloss = synsets_of("bird")[0].definition
    found = named([[0, 1], [2, 3], [0, 1, 2, 3]], names, gloss=gloss)
    assert [parent.name for parent in found] == [
        "bird (like jay, magpie)",
        "bird (like drake, goose)",
        "bird",
    ]
    assert {parent.synset.id for parent in found} == {synsets_of("bird")[0].id}
    # A cluster outside of the group has the word already.
    assert named([[0, 1]], ["robin", "magpie", "bird"])[0].name == "bird (robin, magpie)"


def test_only_groups_below_may_repeat_a_word_and_show_what_differs_from_the_rest():
    names = ["bird (like jay)", "bird (like drake)", "tench", "animal"]
    found = named([[0, 1, 2, 3], [0, 1, 3]], names)
    assert [parent.name for parent in found] == ["animal", "animal (like jay, drake)"]


def test_groups_that_are_only_numbered_are_listed_last_and_whole():
    found = named([[0, 1, 2], [0, 1]], [group_name(2), "beagle", "lemon"])
    assert [parent.name for parent in found] == [
        "beagle, lemon and 1 more",
        f"beagle, {group_name(2)}",
    ]


@pytest.mark.parametrize("unknown", [group_name(6), "My holidays 2024 zwrtkx", "IMG_0001"])
def test_a_cluster_without_a_sense_leaves_no_word_for_its_group(unknown):
    (parent,) = named([[0, 1]], ["beagle", unknown])
    assert parent.synset is None
    assert parent.name.startswith("beagle, ")


def test_guesses_are_covered_but_never_in_the_majority():
    dog, hound = cluster_senses("dog"), cluster_senses("like beagle, whippet", guess=True)
    names = ["dog", "like beagle, whippet", "like Afghan hound"]
    other = cluster_senses("like Afghan hound", guess=True)
    parents = name_parents([[0, 1], [1, 2], [0, 1, 2]], names, [dog, hound, other])
    assert [parent.synset for parent in parents] == [synsets_of("dog")[0], None, None]
    assert [parent.name for parent in parents] == [
        "dog",
        "like beagle, Afghan hound",
        "dog, like beagle and 1 more",
    ]
    lemon = cluster_senses("like lemon", guess=True)
    assert name_parents([[0, 1]], ["dog", "like lemon"], [dog, lemon])[0].synset is None


def test_the_gloss_tells_the_sense_and_numbers_are_left_out():
    crane = next(s for s in synsets_of("crane") if s.lexicon == "animal")
    for name in ("crane", "crane 2", "crane (like heron)", "crane (like heron) 3"):
        assert cluster_senses(name, crane.definition).synsets == (crane,)
    gloss = synsets_of("tench")[0].definition
    assert named([[0, 1]], ["tench", "tench 2"], gloss=gloss)[0].name == "tench"
    # Not a guess, though it says "like".
    assert named([[0, 1]], ["places I like best", "sea"])[0].name == "places I like best, sea"
    assert cluster_senses("My cats").synsets == synsets_of("cat")[:1]


def test_no_groups_and_no_senses_are_no_error():
    assert name_parents([], [], []) == []
    (parent,) = named([[0, 1]], ["group 12", "group 13 2"])
    assert parent.synset is None
