from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from nouncut.compute.rows import unit_rows
from nouncut.errors import ModelError
from nouncut.models.efficientnet import (
    Classifier,
    class_synsets,
    graph_bytes,
    load_weights,
    weights_file,
)
from nouncut.models.mini import MiniEncoder
from nouncut.words.wordnet import load_wordnet

SCRIPTS = Path(__file__).parents[2] / "scripts"


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((width, height))


@pytest.fixture(scope="module")
def original() -> EfficientNet:
    network = EfficientNet.from_name("efficientnet-lite2").eval()
    network.load_state_dict(torch.load(weights_file(), weights_only=True))
    return network


def test_features_equal_those_of_the_original_network(mini, original):
    batch = np.stack([mini.prepare(noise(300, 200)), mini.prepare(noise(90, 400))])
    scaled = torch.from_numpy((batch.transpose(0, 3, 1, 2).astype(np.float32) - 127) / 128)
    with torch.inference_mode():
        pooled = original.extract_features(scaled).mean(dim=(2, 3)).numpy()
        logits = original(scaled).numpy()
    found = mini.encode_prepared(batch)
    np.testing.assert_allclose(found, pooled, atol=1e-5)
    np.testing.assert_allclose(Classifier(load_weights()).logits(found), logits, atol=1e-4)


def test_the_graph_is_the_one_that_its_script_builds():
    path = SCRIPTS / "build_efficientnet.py"
    spec = importlib.util.spec_from_file_location("build_efficientnet", path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    assert script.build_graph().SerializeToString(deterministic=True) == graph_bytes()


def test_features_do_not_depend_on_the_batch(mini):
    batch = np.stack([mini.prepare(noise(300 + i, 200)) for i in range(7)])
    alone = np.concatenate([mini.encode_prepared(batch[i : i + 1]) for i in range(7)])
    np.testing.assert_allclose(mini.encode_prepared(batch), alone, atol=1e-6)
    assert mini.encode_prepared(batch[:0]).shape == (0, mini.image_dim)


@pytest.mark.parametrize("size", [(260, 260), (1, 1), (1, 900), (2000, 31), (640, 480)])
def test_any_size_is_prepared(mini, size):
    array = mini.prepare(noise(*size))
    assert array.shape == (260, 260, 3)
    assert array.dtype == np.uint8


def test_the_centre_is_kept(mini):
    image = Image.new("RGB", (600, 200), "black")
    image.paste("white", (200, 0, 400, 200))
    assert mini.prepare(image).min() > 240


def test_semantic_features_point_at_the_name_of_the_class(mini):
    """An image that certainly shows one class is nearest to the name of that class."""
    synsets, weight = class_synsets(), load_weights()["_fc.weight"]
    goldfish, church = (synsets.index(synset) for synset in ("n01443537", "n03028079"))
    rows = np.zeros((2, mini.image_dim), dtype=np.float32)
    for row, index in enumerate((goldfish, church)):
        direction = weight[index] - weight.mean(axis=0)
        rows[row] = 60 * direction / np.linalg.norm(direction)
    nouns = ["goldfish", "church building", "screwdriver", "banana"]
    semantic = mini.semantic(rows)
    assert semantic.shape == (2, mini.text_dim)
    cosines = unit_rows(semantic) @ mini.encode_texts(nouns).T
    np.testing.assert_array_equal(cosines.argmax(axis=1), [0, 1])


def test_nouns_keep_their_meaning_in_a_prompt(mini):
    nouns = ["cat", "sailboat", "hot dog"]
    prompted = mini.encode_nouns(nouns, "a {} in a video game.")
    np.testing.assert_array_equal((prompted @ mini.encode_nouns(nouns).T).argmax(axis=1), range(3))
    np.testing.assert_array_equal(mini.encode_nouns(nouns), mini.encode_texts(nouns))


def test_every_class_is_a_noun_of_wordnet():
    synsets = class_synsets()
    assert len(set(synsets)) == 1000
    assert synsets == sorted(synsets)
    assert set(synsets) <= set(load_wordnet())


def test_making_the_encoder_loads_nothing():
    program = (
        "import sys; from nouncut.models.mini import MiniEncoder; print(MiniEncoder().fingerprint);"
        "heavy = {'onnxruntime', 'scipy', 'tokenizers', 'safetensors', 'torch', 'wordllama'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == MiniEncoder().fingerprint


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ModelError, match=r"wordllama.*pip install"):
        MiniEncoder()
