"""The embedded model from the command line."""

from __future__ import annotations

from nouncut.runs.run import open_run


def test_the_embedded_model_on_pictures_with_nouns_of_wordnet(nouncut, draw, words, tmp_path):
    draw(tmp_path / "photos", range(12), size=(64, 48))
    common = ("--model", "mini", "-k", 2, "--prompts", "1")
    ended = nouncut("cluster", "photos", *common, "--lexicon", "phenomenon", "--json").json
    assert ended["model"]["name"] == "mini"
    assert (ended["n_images"], ended["n_encoded"]) == (12, 12)
    run = open_run(ended["directory"])
    assert run.manifest["settings"]["lexicons"] == ["phenomenon"]
    assert len(run.manifest["prompts"]) == 1
    assert all(run.names)
    assert any(run.clusters["gloss"].to_pylist())
    again = nouncut("cluster", "photos", *common, "--vocabulary", words)
    assert "all known from before" in again.err
