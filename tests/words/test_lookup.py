from __future__ import annotations

import pytest

from nouncut.words.lookup import find_senses


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("cat", "cat"),
        ("Golden_Retriever", "golden retriever"),
        ("carrots", "carrot"),
        ("boxes", "box"),
        ("children", "child"),
        ("leaves", "leaf"),
        ("hot dogs", "hotdog"),
        ("Clark Nutcracker", "Clark's nutcracker"),
        ("Clark\N{RIGHT SINGLE QUOTATION MARK}s nutcracker", "Clark's nutcracker"),
        ("Oat-Milk", "milk"),
        ("clay-colored sparrows", "sparrow"),
        ("X-rays", "X ray"),
    ],
)
def test_names_are_found_however_they_are_written(name, word):
    assert find_senses(name)[0].word == word


@pytest.mark.parametrize("text", ["", "!!", "Oatghurt", "a cat in a video game.", "猫"])
def test_what_is_no_name_is_not_found(text):
    assert find_senses(text) == ()


def test_exact_words_come_first():
    """WordNet has "glasses", which are not glass."""
    assert find_senses("glasses")[0].word == "spectacles"
