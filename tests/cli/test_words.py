"""The embedded model: real little pictures, and one folder seen through two vocabularies."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut.models.choose import load_encoder
from nouncut.paper.scores import clustering_scores
from nouncut.runs.run import open_run

# Numbers of ImageNet's classes.
BEAGLE, TABBY, SPORTS_CAR, BANANA = 162, 281, 817, 954


@pytest.fixture
def scenes(tmp_path):
    """Write what `mini` sees in scenes with a dog or a cat, beside a car or a fruit."""
    rng = np.random.default_rng(0)
    animal, thing = np.repeat([0, 1], 40), np.tile([0, 1], 40)
    logits = rng.normal(0, 0.5, (80, 1000))
    for row, seen in enumerate(zip(animal, thing, strict=True)):
        logits[row, (BEAGLE, TABBY)[seen[0]]] += 12 + rng.normal(0, 0.3)
        logits[row, (SPORTS_CAR, BANANA)[seen[1]]] += 12 + rng.normal(0, 0.3)
    np.save(tmp_path / "scenes.npy", features_with(logits))
    return tmp_path / "scenes.npy", animal, thing


def features_with(logits):
    """Return features that `mini` classifies in a given way."""
    encoder = load_encoder("mini", device="cpu").encoder
    bias = encoder.visual(np.zeros((1, encoder.image_dim)))
    weights = encoder.visual(np.eye(encoder.image_dim)) - bias
    return np.linalg.lstsq(weights.T, (logits - bias).T)[0].T.astype(np.float32)


def test_two_vocabularies_divide_the_same_images_in_two_ways(nouncut, scenes, tmp_path):
    path, animal, thing = scenes
    (tmp_path / "animals.txt").write_text("dog\npuppy\ncat\nkitten\n")
    (tmp_path / "things.csv").write_text("word\ncar\nvehicle\nfruit\nfood\n")
    for words, truth, other, names in (
        ("animals.txt", animal, thing, ({"dog", "puppy"}, {"cat", "kitten"})),
        ("things.csv", thing, animal, ({"car", "vehicle"}, {"fruit", "food"})),
    ):
        options = ("--model", "mini", "--vocabulary", words, "-k", 2, "-o", words + "-run")
        nouncut("cluster", path, *options)
        run = open_run(tmp_path / f"{words}-run")
        # In a scene where one of the two is hardly seen, its kind is hard to tell.
        assert clustering_scores(truth, run.labels).acc >= 0.95
        assert clustering_scores(other, run.labels).nmi < 0.05
        for kind, expected in enumerate(names):
            usual = np.bincount(run.labels[truth == kind]).argmax()
            assert run.names[usual] in expected


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
    assert "nothing was encoded" in again.err
