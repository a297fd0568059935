from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
import transformers

from nouncut.errors import ParameterError
from nouncut.models.torch_clip import TorchClipEncoder

TEXTS = ["a photo of the cat.", "a photo of the sea.", "art of the sea dog."]


@pytest.fixture(scope="module")
def encoder(tiny):
    return TorchClipEncoder(tiny.clip(), device="cpu", batch_size=8)


@pytest.mark.parametrize("kind", ["clip", "siglip", "siglip2", "chinese_clip"])
def test_image_features_equal_transformers(tiny, kind):
    folder = getattr(tiny, kind)()
    encoder = TorchClipEncoder(folder, device="cpu", batch_size=2)
    images = [tiny.photo(*size) for size in ((60, 41), (17, 30), (1, 1), (90, 33), (30, 30))]
    batch = np.stack([encoder.prepare(image) for image in images])
    batch.flags.writeable = False  # memory-mapped arrays are read-only
    features = encoder.encode_prepared(batch)
    model, _ = tiny.load_oracle(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    with torch.inference_mode():
        output = model.get_image_features(**processor(images, return_tensors="pt")).pooler_output
    expected = torch.nn.functional.normalize(output, dim=1).numpy()
    assert features.shape == (5, encoder.image_dim)
    assert features.dtype == np.float32
    assert encoder.image_dim == encoder.text_dim
    np.testing.assert_allclose(features, expected, atol=1e-5)


def test_empty_input(tiny, encoder):
    empty = np.empty((0, 3, tiny.IMAGE_SIZE, tiny.IMAGE_SIZE), dtype=np.float32)
    assert encoder.encode_prepared(empty).shape == (0, encoder.image_dim)
    assert encoder.encode_texts([]).shape == (0, encoder.text_dim)


def test_running_out_of_memory_makes_smaller_batches(tiny, monkeypatch):
    encoder = TorchClipEncoder(tiny.clip(), device="cpu", batch_size=8)
    batch = np.stack([encoder.prepare(tiny.photo(30, 30, seed)) for seed in range(11)])
    expected = encoder.encode_prepared(batch)
    run = encoder._features
    sizes = []

    def tight(inputs):
        sizes.append(len(inputs["pixel_values"]))
        if sizes[-1] > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return run(inputs)

    monkeypatch.setattr(encoder, "_features", tight)
    np.testing.assert_allclose(encoder.encode_prepared(batch), expected, atol=1e-6)
    assert sizes[:3] == [8, 4, 2]
    assert set(sizes[2:]) <= {2, 1}


def test_half_precision_stays_close_to_float32(encoder, monkeypatch):
    expected = encoder.encode_texts(TEXTS)
    monkeypatch.setattr(encoder, "precision", "bfloat16")
    features = encoder.encode_texts(TEXTS)
    assert features.dtype == np.float32
    assert 1e-5 < np.abs(features - expected).max() < 0.1


def test_the_device_is_checked_when_the_model_is_loaded(tiny):
    encoder = TorchClipEncoder(tiny.clip(), device="abacus")
    with pytest.raises(ParameterError, match="`device` must be"):
        encoder.encode_texts(["a cat"])


def test_siglip_reads_lower_case(tiny):
    encoder = TorchClipEncoder(tiny.siglip(), device="cpu")
    features = encoder.encode_texts(["A Photo", "a photo"])
    np.testing.assert_array_equal(features[0], features[1])


def test_wrong_arguments_are_refused(tiny, encoder):
    with pytest.raises(ParameterError, match=r"pass \[text\]"):
        encoder.encode_texts("a cat")
    with pytest.raises(ParameterError, match="`batch_size` must be"):
        TorchClipEncoder(tiny.clip(), device="cpu", batch_size=0)


def test_the_fingerprint_depends_on_weights_and_preprocessing(tiny, encoder, tmp_path):
    copy = shutil.copytree(tiny.clip(), tmp_path / "copy")
    assert TorchClipEncoder(copy, device="cpu").fingerprint == encoder.fingerprint
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    settings["resample"] = 2
    (copy / "preprocessor_config.json").write_text(json.dumps(settings))
    assert TorchClipEncoder(copy, device="cpu").fingerprint != encoder.fingerprint
    other = TorchClipEncoder(tiny.clip(seed=1), device="cpu")
    assert other.fingerprint != encoder.fingerprint
