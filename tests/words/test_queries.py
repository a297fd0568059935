"""The nouns of a search text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.words.queries import read_query


@pytest.mark.parametrize(
    ("text", "phrases", "heads"),
    [
        ("dog", ["dog"], ["dog"]),
        ("Dogs on the grass", ["dog", "grass"], ["dog"]),
        ("golden retrievers", ["golden retriever"], ["golden retriever"]),
        ("police cars at night by a lake", ["police car", "night", "lake"], ["police car"]),
        ("a photo of my cat", ["cat"], ["cat"]),
        ("cats, dogs and birds in trees", ["cat", "dog", "bird", "tree"], ["cat", "dog", "bird"]),
        ("women with children", ["woman", "child"], ["woman"]),
        ("zwrtkx", [], []),
        ("", [], []),
        ("of the", [], []),
        ("{} dog \\ %", ["dog"], ["dog"]),
        ("dog s", ["dog", "s"], ["s"]),
    ],
)
def test_nouns_and_what_the_text_is_about(text, phrases, heads):
    query = read_query(text)
    assert [phrase.text for phrase in query.phrases] == phrases
    assert [phrase.text for phrase in query.heads] == heads


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_read(text):
    query = read_query(text)
    assert set(query.heads) <= set(query.phrases)
    assert all(phrase.senses for phrase in query.phrases)
