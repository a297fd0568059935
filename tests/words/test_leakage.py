import numpy as np
import pytest

from nouncut.errors import ParameterError
from nouncut.words.leakage import remove_class_names
from nouncut.words.nouns import load_nouns

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


@pytest.mark.parametrize(
    ("noun", "class_name"),
    [
        ("dog", "dog"),
        ("Dog", "DOG"),
        ("polar bear", "polar_bear"),
        ("T-shirt", "t shirt"),
        ("dogs", "dog"),
        ("dog", "dogs"),
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
        ("tench", "tench, Tinca tinca"),
        ("Tinca tinca", "tench, Tinca tinca"),
    ],
)
def test_class_names_go(noun, class_name):
    assert remove_class_names(["stays", noun, "too"], [class_name]).tolist() == [0, 2]
    if "," not in class_name:
        assert remove_class_names([class_name], [noun]).tolist() == []


@pytest.mark.parametrize(
    ("noun", "class_name"),
    [
        ("hound", "dog"),
        ("guide dog", "dog"),
        ("dog", "guide dog"),
        ("dogsled", "dog"),
        ("bus", "bu"),
        ("glas", "glass"),
        ("iri", "iris"),
        ("dogs bed", "dog bed"),
        ("s", ""),
        ("boxe", "box"),
    ],
)
def test_other_nouns_stay(noun, class_name):
    assert remove_class_names([noun], [class_name]).tolist() == [0]


def test_wordnet_without_cifar_10():
    nouns = [noun.word for noun in load_nouns()]
    kept = remove_class_names(nouns, CIFAR_10)
    gone = np.setdiff1d(np.arange(len(nouns)), kept)
    assert (np.diff(kept) > 0).all()
    # The usual word for an automobile is "car".
    assert {nouns[i].lower() for i in gone} == CIFAR_10 - {"automobile"}


def test_nothing_to_do():
    assert remove_class_names(["dog"], []).tolist() == [0]
    empty = remove_class_names([], ["dog"])
    assert empty.tolist() == []
    assert empty.dtype == np.intp


@pytest.mark.parametrize("arguments", [("dog", ["dog"]), (["dog"], "dog")])
def test_one_text_is_no_list(arguments):
    with pytest.raises(ParameterError, match=r"must be a list, not a text: pass \['dog'\]"):
        remove_class_names(*arguments)
