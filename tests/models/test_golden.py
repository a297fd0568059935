"""Features of real images against recorded ones: they must not change from version to version.

``python tests/models/test_golden.py`` records them again. Raise `MINI_VERSION` when they change.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nouncut.cli.demo import demo_images
from nouncut.images.open import open_image
from nouncut.models.efficientnet import Classifier, class_synsets, load_weights
from nouncut.models.mini import MiniEncoder
from nouncut.words.wordnet import load_wordnet

RECORDED = Path(__file__).with_name("golden.json")
# Photographs of 120 x 120 pixels; the classes have been checked by eye. ImageNet has no class for
# gentoo penguins.
PHOTOGRAPHS = {
    "s0019.jpg": "great grey owl",
    "s0089.jpg": "peacock",
    "s0348.jpg": "flamingo",
    "s0430.jpg": "hummingbird",
    "s0537.jpg": "bald eagle",
    "s0888.jpg": "king penguin",
    "s0922.jpg": "sulphur-crested cockatoo",
    "s0953.jpg": "cock",
}
# One of them again, enlarged to an oblong: for the crop.
ENLARGED, ENLARGED_SIZE = "s0348.jpg", (1280, 1498)
IMAGES = (*PHOTOGRAPHS, "enlarged")
# Every 32nd class and every 12th dimension are enough to notice a change.
CLASSES, DIMENSIONS = slice(None, None, 32), slice(None, None, 12)
# BLAS libraries differ by about 1e-5; with other resampling, cropping or normalisation the standard
# deviation of the difference is above 1.5e-3.
LOGIT_TOLERANCE, SEMANTIC_TOLERANCE = 1e-3, 1e-4


def features(encoder: MiniEncoder) -> dict[str, dict[str, list]]:
    folder = demo_images().folder
    images = [open_image(folder / name) for name in PHOTOGRAPHS]
    whole = open_image(folder / ENLARGED)
    images.append(whole.resize(ENLARGED_SIZE, Image.Resampling.BICUBIC))
    rows = encoder.encode_prepared(np.stack([encoder.prepare(image) for image in images]))
    logits, semantic = Classifier(load_weights()).logits(rows), encoder.semantic(rows)
    wordnet = load_wordnet()
    names = [wordnet[synset].words[0] for synset in class_synsets()]
    return {
        name: {
            "classes": [names[index] for index in np.argsort(-logits[row])[:3]],
            "logits": [round(float(value), 5) for value in logits[row, CLASSES]],
            "semantic": [round(float(value), 5) for value in semantic[row, DIMENSIONS]],
        }
        for row, name in enumerate(IMAGES)
    }


@pytest.fixture(scope="module")
def found(mini):
    return features(mini)


@pytest.mark.parametrize("name", IMAGES)
def test_features_are_the_recorded_ones(found, name):
    recorded = json.loads(RECORDED.read_text())[name]
    np.testing.assert_allclose(found[name]["logits"], recorded["logits"], atol=LOGIT_TOLERANCE)
    np.testing.assert_allclose(
        found[name]["semantic"], recorded["semantic"], atol=SEMANTIC_TOLERANCE
    )


@pytest.mark.parametrize(("name", "shown"), PHOTOGRAPHS.items())
def test_classes_are_right_and_the_recorded_ones(found, name, shown):
    recorded = json.loads(RECORDED.read_text())[name]
    assert found[name]["classes"] == recorded["classes"]
    assert found[name]["classes"][0] == shown


if __name__ == "__main__":
    recorded = features(MiniEncoder())
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in recorded.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
