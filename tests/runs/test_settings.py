"""Settings are checked, hashed, shown and parsed by their declarations."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut import cluster_images
from nouncut.errors import InputError, ParameterError
from nouncut.runs.settings import Settings, declarations, shown_settings
from nouncut.words.prompts import PROMPTS
from nouncut.words.wordnet import VISIBLE_LEXICONS

OTHERS = {
    "n_clusters": 3,
    "levels": (2,),
    "model": "mini",
    "looks": ("mini",),
    "vocabulary": ("calm", "wild"),
    "lexicons": None,
    "prompts": ("{}",),
    "tau": "auto",
    "semantic_weight": 0.5,
    "n_neighbors": 10,
    "random_state": 1,
    "solver": "exact",
    "noun_filter": "none",
    "compare": "words",
}
LABELS = {declaration.label for declaration in declarations().values()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("n_clusters", "many"),
        ("n_neighbors", 0),
        ("n_neighbors", -3),
        ("tau", 0.0),
        ("tau", float("nan")),
        ("tau", "hot"),
        ("semantic_weight", -0.1),
        ("semantic_weight", 1.5),
        ("semantic_weight", None),
        ("random_state", -1),
        ("random_state", 2**32),
        ("random_state", 0.5),
        ("model", ""),
        ("solver", "magic"),
        ("noun_filter", "magic"),
        ("compare", "prices"),
        ("vocabulary", ()),
        ("lexicons", ("animal", "unicorns")),
        ("prompts", ()),
        ("prompts", ("no place for a noun",)),
    ],
)
def test_wrong_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"`{name}`"):
        Settings(**{name: value})


def test_a_vocabulary_and_lexicons_exclude_each_other():
    with pytest.raises(ParameterError, match="exclude each other"):
        Settings(vocabulary=("calm",), lexicons=None)


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_every_setting_is_part_of_the_digest(name, value):
    assert Settings(**{name: value}).digest(["photos"]) != Settings().digest(["photos"])


def test_every_setting_is_declared_and_is_a_parameter_of_cluster_images():
    names = [field.name for field in fields(Settings)]
    assert list(declarations()) == names == list(OTHERS)
    parameters = inspect.signature(cluster_images).parameters
    for field in fields(Settings):
        assert parameters[field.name].default == field.default


def test_the_defaults_of_the_command_line_are_those_of_python():
    given = {name: one.parse(one.option_default) for name, one in declarations().items()}
    assert Settings(**given) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n_clusters", "12", 12),
        ("n_neighbors", "auto", "auto"),
        ("tau", "0.5", 0.5),
        ("tau", "auto", "auto"),
        ("lexicons", "all", None),
        ("lexicons", "animal, food", ("animal", "food")),
        ("prompts", "3,1,3", (PROMPTS[2], PROMPTS[0])),
    ],
)
def test_texts_of_the_command_line_become_values(name, text, value):
    assert declarations()[name].parse(text) == value


def test_prompts_can_come_from_a_file(tmp_path):
    (tmp_path / "prompts.txt").write_text("a sketch of a {}.\n")
    parse = declarations()["prompts"].parse
    assert parse(str(tmp_path / "prompts.txt")) == ("a sketch of a {}.",)
    with pytest.raises(ParameterError, match="1 to 7"):
        parse("1,8")
    with pytest.raises(InputError, match="nowhere"):
        parse(str(tmp_path / "nowhere.txt"))


@given(st.lists(st.text(), max_size=3), st.integers(0, 2**32 - 1))
def test_the_digest_is_of_values_alone(sources, seed):
    settings = Settings(random_state=seed)
    assert settings.digest(sources) == replace(settings).digest(list(sources))
    assert settings.digest(sources) != settings.digest([*sources, "more"])


def test_sources_that_are_no_text_have_a_digest():
    assert Settings().digest(["photos\udce9"]) != Settings().digest(["photos\udcea"])


@pytest.mark.parametrize("settings", [Settings(), *(Settings(**{k: v}) for k, v in OTHERS.items())])
def test_settings_survive_json_and_are_shown_with_labels(settings):
    manifest = {"settings": json.loads(json.dumps(settings.to_json()))}
    shown = dict(shown_settings(manifest))
    assert set(shown) == LABELS
    assert "None" not in "".join(shown.values())
    assert shown["Seed"] == str(settings.random_state)


def test_open_settings_are_shown_with_what_was_used():
    used = {"noun_filter": "tac", "n_clusters": 7, "compare": "looks", "tau": 0.123456}
    shown = dict(shown_settings({"settings": Settings().to_json(), "used": used}))
    assert shown["Noun filter"] == "tac (chosen automatically)"
    assert shown["Number of groups"] == "7 (chosen automatically)"
    assert shown["Temperature (tau)"] == "0.1235 (chosen automatically)"
    assert shown["Kinds of nouns"] == ", ".join(VISIBLE_LEXICONS)
    every = dict(shown_settings({"settings": Settings(lexicons=None).to_json()}))
    assert every["Kinds of nouns"] == "all of WordNet"


def test_settings_of_version_0_1_0_are_shown():
    manifest = {
        "settings": {"n_clusters": None, "words": ["calm"], "templates": ["{}"], "seed": 3},
        "n_clusters": 5,
    }
    shown = dict(shown_settings(manifest))
    assert shown["Number of groups"] == "5 (chosen automatically)"
    assert (shown["Vocabulary"], shown["Prompts"], shown["Seed"]) == ("calm", "{}", "3")


@pytest.mark.parametrize(
    ("settings", "comparison"),
    [
        (Settings(), "looks"),
        (Settings(vocabulary=("a", "b")), "words"),
        (Settings(vocabulary=("a", "b"), compare="looks"), "looks"),
        (Settings(compare="words"), "words"),
    ],
)
def test_own_words_decide_what_makes_images_close(settings, comparison):
    assert settings.comparison == comparison
