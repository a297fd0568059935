import pytest

from nouncut.report.facts import describe_count, describe_model, describe_settings, shown_date


@pytest.mark.parametrize(
    ("confidence", "verdict"), [(0.9, "Quite sure"), (0.5, "A fair guess"), (0.1, "Unsure")]
)
def test_the_verdict_follows_the_confidence(confidence, verdict):
    count = {"n_clusters": 2, "candidates": [[2, 0.0], [3, None]], "confidence": confidence}
    facts = describe_count({"n_clusters": 2, "cluster_count": count})
    assert facts.verdict == verdict
    assert facts.candidates == ((2, 0.0), (3, 0.0))


def test_a_given_number_is_not_an_estimate():
    assert describe_count({"n_clusters": 1}).explanation.startswith("1 group was asked for")


def test_the_embedded_model_is_not_passed_off_as_clip():
    facts = describe_model({"model": {"name": "mini", "embedded": True}})
    assert facts.is_embedded
    assert "not CLIP" in facts.meaning
    assert "not CLIP" not in describe_model({"model": {"name": "ViT-B/32"}}).meaning


@pytest.mark.parametrize(
    ("weight", "words"), [(1.0, "looks and words"), (0.5, "more than words"), (0.0, "not words")]
)
def test_trust_is_one_sentence(weight, words):
    facts = describe_model({"model": {"name": "mini"}, "noun_trust": {"weight": weight}})
    assert words in facts.trust
    assert facts.trust.count(".") == 1


def test_trust_that_was_not_judged_is_not_mentioned():
    assert describe_model({"model": {"name": "mini"}, "noun_trust": None}).trust == ""


def test_settings_show_what_was_chosen(small_run):
    settings = dict(describe_settings(small_run.manifest))
    assert settings["Number of groups"] == "3 (chosen automatically)"
    assert settings["Noun filter"] == "tac (chosen automatically)"
    assert settings["Images compared by"] == "looks (chosen automatically)"
    assert (
        settings["Temperature (tau)"] == f"{small_run.manifest['tau']:.4g} (chosen automatically)"
    )
    assert settings["Seed"] == "0"
    assert settings["Model's fingerprint"] == "mini-1"


def test_text_that_is_no_date_is_shown_unchanged():
    assert shown_date("yesterday") == "yesterday"
    assert shown_date(None) == ""
