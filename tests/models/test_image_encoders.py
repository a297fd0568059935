"""Encoders of images alone, in both runtimes."""

from __future__ import annotations

import shutil

import numpy as np
import onnx
import pytest
import torch
import transformers

from nouncut.errors import ModelError
from nouncut.models.choose import load_image_encoder
from nouncut.models.encoder import Encoder
from nouncut.models.onnx_clip import OnnxClipEncoder
from nouncut.models.onnx_images import OnnxImageEncoder
from nouncut.models.torch_images import TorchImageEncoder

SIZES = ((60, 41), (17, 30), (1, 1), (90, 33), (30, 30), (31, 77))
BOTH = ("last_hidden_state", "pooler_output")


def encode(tiny, encoder):
    batch = np.stack([encoder.prepare(tiny.photo(*size)) for size in SIZES])
    return encoder.encode_prepared(batch)


def transformers_states(tiny, folder):
    """Return the states of all tokens, and the pooled output."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    images = [tiny.photo(*size) for size in SIZES]
    with torch.inference_mode():
        output = model(**processor(images, return_tensors="pt"))
    return output.last_hidden_state.numpy(), output.pooler_output.numpy()


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("outputs", [("last_hidden_state",), BOTH])
@pytest.mark.parametrize("place", ["onnx/", ""])
def test_both_runtimes_agree_on_dinov2(tiny, outputs, place):
    folder = tiny.exported(layout="image_model", source=tiny.dinov2(), outputs=outputs, place=place)
    by_torch, by_onnx = (
        load_image_encoder(path, device="cpu").encoder for path in (tiny.dinov2(), folder)
    )
    assert isinstance(by_torch, TorchImageEncoder)
    assert isinstance(by_onnx, OnnxImageEncoder)
    assert by_torch.image_dim == by_onnx.image_dim == 16
    assert by_torch.fingerprint != by_onnx.fingerprint
    expected = encode(tiny, by_torch)
    features = encode(tiny, by_onnx)
    assert (features * expected).sum(axis=1).min() > 0.9999
    # DINOv2's pooled output is its first token.
    states, pooled = transformers_states(tiny, tiny.dinov2())
    np.testing.assert_allclose(pooled, states[:, 0], atol=1e-6)
    np.testing.assert_allclose(features, unit(pooled), atol=1e-5)


def test_a_pooling_layer_without_weights_is_not_used(tiny):
    encoder = load_image_encoder(tiny.vit(), device="cpu").encoder
    states, _ = transformers_states(tiny, tiny.vit())
    np.testing.assert_allclose(encode(tiny, encoder), unit(states[:, 0]), atol=1e-5)


def test_other_missing_weights_are_an_error(tiny, tmp_path):
    folder = shutil.copytree(tiny.vit(), tmp_path / "copy")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("layernorm.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"do not match.*layernorm\.weight"):
        encode(tiny, load_image_encoder(folder, device="cpu").encoder)


@pytest.mark.parametrize("layout", ["two_graphs", "one_graph", "torch"])
def test_the_image_side_of_a_dual_encoder_is_the_same_encoder(tiny, layout):
    folder = tiny.clip()
    if layout != "torch":
        folder = tiny.exported(layout=layout, source=folder)
    encoder, reason = load_image_encoder(folder, device="cpu")
    assert isinstance(encoder, Encoder)  # so that its features are stored once for both uses
    assert "was asked for" in reason
    assert encode(tiny, encoder).shape == (6, 12)


def test_the_text_side_is_not_required(tiny, tmp_path):
    source = tiny.exported(layout="two_graphs", source=tiny.clip())
    folder = tmp_path / "images only"
    (folder / "onnx").mkdir(parents=True)
    for name in ("onnx/vision_model.onnx", "preprocessor_config.json"):
        shutil.copy(source / name, folder / name)
    encoder = load_image_encoder(folder, device="cpu").encoder
    assert not isinstance(encoder, OnnxClipEncoder)
    whole = load_image_encoder(source, device="cpu").encoder
    np.testing.assert_array_equal(encode(tiny, encoder), encode(tiny, whole))


def test_one_tower_is_enough(tiny):
    parent = tiny.exported(layout="two_folders", source=tiny.clip())
    encoder = load_image_encoder(parent / "clip-vision", device="cpu").encoder
    assert encode(tiny, encoder).shape == (6, 12)


def test_the_embedded_model_encodes_images():
    encoder, reason = load_image_encoder("mini")
    assert encoder.name == "mini"
    assert "embedded" in reason


def test_a_classifier_has_no_vector(tiny, tmp_path):
    source = tiny.exported(
        layout="image_model", source=tiny.dinov2(), outputs=("last_hidden_state",)
    )
    folder = shutil.copytree(source, tmp_path / "copy")
    model = onnx.load(folder / "onnx/model.onnx")
    model.graph.output[0].name = "logits"
    onnx.save(model, folder / "onnx/model.onnx")
    with pytest.raises(ModelError, match=r"model\.onnx has the outputs 'logits', of which none"):
        load_image_encoder(folder, device="cpu")


def test_a_dimension_that_no_file_states_is_measured(tiny, tmp_path):
    source = tiny.exported(layout="image_model", source=tiny.dinov2(), outputs=BOTH)
    folder = shutil.copytree(source, tmp_path / "copy")
    model = onnx.load(folder / "onnx/model.onnx")
    for value in model.graph.output:
        for axis in value.type.tensor_type.shape.dim:
            axis.dim_param = "unknown"
    onnx.save(model, folder / "onnx/model.onnx")
    assert load_image_encoder(folder, device="cpu").encoder.image_dim == 16
