from __future__ import annotations

import re
from collections import Counter

import pytest

from nouncut.words.readability import readability
from nouncut.words.wordnet import load_wordnet, mentions, synsets_of


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("dog", "Canis"),
        ("dog", "Welsh springer spaniel"),
        ("truck", "garbage truck"),
        ("fish", "tench"),
        ("church", "intuition"),
        ("animal", "accident"),
    ],
)
def test_people_prefer(better, worse):
    first, second = (readability(word, synsets_of(word)[0]) for word in (better, worse))
    assert 0 < second < first <= 1


def test_topics_are_good_names_and_events_are_not():
    # All three words are common, so only their lexicons make a difference.
    factors = [readability(word, synsets_of(word)[0]) for word in ("house", "food", "fire")]
    assert factors == [1, 1, 0.25]


@pytest.mark.parametrize("word", ["Canis", "Rosaceae", "Tinca"])
def test_genera_and_families_are_last_choices(word):
    assert 0 < readability(word, synsets_of(word)[0]) < 0.02


def test_mentions_count_the_words_of_all_glosses():
    glosses = (synset.gloss.lower() for synset in load_wordnet().values())
    assert mentions() == Counter(word for gloss in glosses for word in re.findall("[a-z]+", gloss))
