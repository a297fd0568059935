import numpy as np
import pytest

from nouncut.errors import ParameterError
from nouncut.words.leakage import remove_class_names
from nouncut.words.nouns import all_noun_words

CIFAR_10 = {
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
}


SAME = [
    ("dog", "dog"),
    ("Dog", "DOG"),
    ("polar bear", "polar_bear"),
    ("T-shirt", "t shirt"),
    ("tench", "tench, Tinca tinca"),
    ("Tinca tinca", "tench, Tinca tinca"),
]
NUMBER = [
    ("dogs", "dog"),
    ("aquatic mammal", "aquatic_mammals"),
    ("box", "boxes"),
    ("horse", "horses"),
    ("cherry", "cherries"),
    ("cookie", "cookies"),
    ("wolf", "wolves"),
    ("knife", "knives"),
    ("glove", "gloves"),
    ("woman", "women"),
    ("dormouse", "dormice"),
    ("person", "people"),
]
SYNONYMS = [
    ("domestic dog", "dog"),
    ("Canis familiaris", "dogs"),
    ("cad", "dog"),
    ("car", "automobile"),
    ("jersey", "T-shirt"),
]
UNRELATED = [
    ("puppy", "dog"),
    ("guide dog", "dog"),
    ("dog", "guide dog"),
    ("dogsled", "dog"),
    ("bus", "bu"),
    ("glas", "glass"),
    ("iri", "iris"),
    ("dogs bed", "dog bed"),
    ("s", ""),
    ("boxe", "box"),
]


@pytest.mark.parametrize(("noun", "class_name"), SAME)
def test_class_names_go(noun, class_name):
    for leak_words in ("exact", "related"):
        kept = remove_class_names(["stays", noun, "too"], [class_name], leak_words)
        assert kept.tolist() == [0, 2]


@pytest.mark.parametrize(("noun", "class_name"), [*NUMBER, *SYNONYMS])
def test_related_words_stay_unless_they_are_unwanted(noun, class_name):
    assert remove_class_names([noun], [class_name]).tolist() == [0]
    assert remove_class_names([noun], [class_name], "related").tolist() == []
    assert remove_class_names([class_name], [noun], "related").tolist() == []


@pytest.mark.parametrize(("noun", "class_name"), UNRELATED)
def test_other_nouns_stay(noun, class_name):
    for leak_words in ("exact", "related"):
        assert remove_class_names([noun], [class_name], leak_words).tolist() == [0]


def test_wordnet_without_cifar_10():
    nouns = all_noun_words()
    kept = remove_class_names(nouns, CIFAR_10)
    gone = np.setdiff1d(np.arange(len(nouns)), kept)
    assert (np.diff(kept) > 0).all()
    assert {nouns[i].lower() for i in gone} == CIFAR_10
    fewer = remove_class_names(nouns, CIFAR_10, "related")
    assert set(fewer) < set(kept)
    assert {"car", "Canis familiaris", "true cat"}.isdisjoint(nouns[i] for i in fewer)


def test_nothing_to_do():
    assert remove_class_names(["dog"], []).tolist() == [0]
    empty = remove_class_names([], ["dog"])
    assert empty.tolist() == []
    assert empty.dtype == np.intp


@pytest.mark.parametrize("arguments", [("dog", ["dog"]), (["dog"], "dog")])
def test_one_text_is_no_list(arguments):
    with pytest.raises(ParameterError, match=r"must be a list, not a text: pass \['dog'\]"):
        remove_class_names(*arguments)


def test_other_choices_are_named():
    with pytest.raises(ParameterError, match="`leak_words` must be one of 'exact', 'related'"):
        remove_class_names(["dog"], ["dog"], "plurals")
