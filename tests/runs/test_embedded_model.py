"""The embedded model on real photographs, plain pictures and made scenes."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from nouncut import cluster_images, encode_images, predict_images, update_run
from nouncut.cli.demo import demo_images
from nouncut.models.choose import load_encoder
from nouncut.models.efficientnet import FEATURE_DIM, Classifier, load_weights
from nouncut.paper.scores import clustering_scores
from nouncut.store.store import FeatureStore

# Numbers of photographs of the demo.
BIRDS = {
    "owl": (19, 215, 622, 221, 45, 121, 360, 526),
    "hummingbird": (632, 248, 430, 235, 125, 567, 111, 601),
    "penguin": (331, 11, 247, 201, 518, 37, 165, 18),
    "eagle": (81, 537, 350, 566, 525),
}
WORDS = ("gull", "owl", "duck", "penguin", "swan", "eagle", "parrot", "hummingbird", "ostrich")


@pytest.mark.parametrize("compare", ["looks", "words"])
def test_birds_are_grouped_and_named(tmp_path, compare):
    folder = demo_images().folder
    kinds = {folder / f"s{number:04}.jpg": kind for kind in BIRDS for number in BIRDS[kind]}
    run = cluster_images(
        sorted(kinds),
        len(BIRDS),
        model="mini",
        vocabulary=WORDS,
        compare=compare,
        store=FeatureStore(tmp_path / "store"),
        output=tmp_path / "run",
    )
    right = [
        run.names[label] == kinds[path] for path, label in zip(run.paths(), run.labels, strict=True)
    ]
    assert set(run.names) == set(BIRDS)
    assert all(right), [path.name for path, ok in zip(run.paths(), right, strict=True) if not ok]


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
    classify = Classifier(load_weights()).logits
    bias = classify(np.zeros((1, FEATURE_DIM)))
    weights = classify(np.eye(FEATURE_DIM)) - bias
    return np.linalg.lstsq(weights.T, (logits - bias).T)[0].T.astype(np.float32)


def test_two_vocabularies_divide_the_same_images_in_two_ways(scenes, tmp_path):
    path, animal, thing = scenes
    (tmp_path / "animals.txt").write_text("dog\npuppy\ncat\nkitten\n")
    (tmp_path / "things.csv").write_text("word\ncar\nvehicle\nfruit\nfood\n")
    for words, truth, other, names in (
        ("animals.txt", animal, thing, ({"dog", "puppy"}, {"cat", "kitten"})),
        ("things.csv", thing, animal, ({"car", "vehicle"}, {"fruit", "food"})),
    ):
        run = cluster_images(
            path,
            2,
            model="mini",
            vocabulary=tmp_path / words,
            store=FeatureStore(tmp_path / "store"),
            output=tmp_path / f"{words}-run",
        )
        # In a scene where one of the two is hardly seen, its kind is hard to tell.
        assert clustering_scores(truth, run.labels).acc >= 0.95
        assert clustering_scores(other, run.labels).nmi < 0.05
        for kind, expected in enumerate(names):
            usual = np.bincount(run.labels[truth == kind]).argmax()
            assert run.names[usual] in expected


def test_the_embedded_model_end_to_end(tmp_path, monkeypatch):
    """The README's script, on a folder of plainly different pictures."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(12):
        for kind in ("plain", "noise"):
            pixels = np.full((64, 64, 3), (90, 140, 220), dtype=np.uint8)
            if kind == "noise":
                pixels = rng.integers(0, 256, pixels.shape, dtype=np.uint8)
            pixels[:4, :4] = rng.integers(0, 256, 3)
            Image.fromarray(pixels).save(folder / f"{kind} {number}.png")
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "cache"))
    encoder = load_encoder("mini", device="cpu").encoder
    first = encode_images(folder, encoder)
    assert (first.n_encoded, len(first.paths)) == (24, 24)
    assert (tmp_path / "cache").is_dir()
    visual = first.visual()
    noisy = np.array(["noise" in path.name for path in first.paths])
    centres = np.stack([visual[noisy].mean(axis=0), visual[~noisy].mean(axis=0)])
    assert np.all((visual @ centres.T).argmax(axis=1) == ~noisy)


def test_words_that_it_does_not_know_are_named(scenes, tmp_path):
    run = cluster_images(
        scenes[0],
        2,
        model="mini",
        vocabulary=["dog", "cat", "Oatghurt", "oat milk", "zwrtkx"],
        store=FeatureStore(tmp_path / "store"),
        output=tmp_path / "run",
    )
    (warning,) = run.manifest["warnings"]
    assert "mini does not know Oatghurt, zwrtkx: " in warning


@pytest.mark.parametrize("compare", ["looks", "words"])
def test_new_images_are_placed_by_looks_and_by_words(tmp_path, compare):
    photos, store = tmp_path / "photos", FeatureStore(tmp_path / "store")
    photos.mkdir()

    def draw(numbers):
        for number in numbers:
            pixels = np.random.default_rng(number).integers(0, 60, (32, 32, 3), dtype=np.uint8)
            pixels[..., number % 3] += 150
            Image.fromarray(pixels).save(photos / f"{number:02}.png")

    draw(range(15))
    words = ("red", "green", "blue", "cat", "dog")
    options = {"model": "mini", "vocabulary": words, "compare": compare, "store": store}
    run = cluster_images(photos, 3, output=tmp_path / "run", **options)
    draw(range(15, 21))
    found = predict_images(run, photos, store=store).table
    assert found["cluster"].to_pylist()[:15] == run.labels.tolist()
    after = update_run(run, store=store).run
    assert after.labels.tolist() == found["cluster"].to_pylist()
    assert len(set(after.labels[np.arange(21) % 3 == 0])) == 1
