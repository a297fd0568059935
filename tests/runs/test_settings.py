from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.runs.settings import Settings

OTHERS = {
    "n_clusters": 3,
    "model": "mini",
    "words": ("calm", "wild"),
    "lexicons": None,
    "templates": ("{}",),
    "tau": "auto",
    "n_neighbors": 10,
    "seed": 1,
    "solver": "exact",
    "noun_filter": "none",
    "compare": "words",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("n_neighbors", 0),
        ("n_neighbors", -3),
        ("tau", 0.0),
        ("tau", float("nan")),
        ("tau", "hot"),
        ("seed", -1),
        ("seed", 2**32),
        ("solver", "magic"),
        ("noun_filter", "magic"),
        ("compare", "prices"),
        ("lexicons", ("animal", "unicorns")),
        ("templates", ()),
        ("templates", ("no place for a noun",)),
    ],
)
def test_wrong_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name.removesuffix("s").replace("templates", "prompt")):
        Settings(**{name: value})


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_every_setting_is_part_of_the_digest(name, value):
    assert Settings(**{name: value}).digest(["photos"]) != Settings().digest(["photos"])


def test_all_settings_are_tried_above():
    assert set(OTHERS) == set(Settings.__dataclass_fields__)


@given(st.lists(st.text(), max_size=3), st.integers(0, 2**32 - 1))
def test_the_digest_is_of_values_alone(sources, seed):
    settings = Settings(seed=seed)
    assert settings.digest(sources) == replace(settings).digest(list(sources))
    assert settings.digest(sources) != settings.digest([*sources, "more"])


def test_sources_that_are_no_text_have_a_digest():
    assert Settings().digest(["photos\udce9"]) != Settings().digest(["photos\udcea"])


def test_settings_survive_json():
    found = json.loads(json.dumps(Settings(words=("a", "b")).as_json()))
    assert found["words"] == ["a", "b"]
    assert set(found) == set(OTHERS)


@pytest.mark.parametrize(
    ("settings", "compared"),
    [
        (Settings(), "looks"),
        (Settings(words=("a", "b")), "words"),
        (Settings(words=("a", "b"), compare="looks"), "looks"),
        (Settings(compare="words"), "words"),
    ],
)
def test_words_of_ones_own_are_what_images_are_compared_by(settings, compared):
    assert settings.compared_by == compared
