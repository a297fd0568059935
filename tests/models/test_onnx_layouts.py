from __future__ import annotations

import shutil

import pytest

from nouncut.models.onnx_layouts import find_onnx, image_side, text_side, tower_names

# Files of repositories on the hub.
XENOVA_CLIP = [
    ".gitattributes",
    "README.md",
    "config.json",
    "merges.txt",
    "onnx/model.onnx",
    "onnx/model_fp16.onnx",
    "onnx/model_quantized.onnx",
    "onnx/text_model.onnx",
    "onnx/text_model_fp16.onnx",
    "onnx/text_model_quantized.onnx",
    "onnx/vision_model.onnx",
    "onnx/vision_model_fp16.onnx",
    "onnx/vision_model_quantized.onnx",
    "preprocessor_config.json",
    "quantize_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
]
IMMICH = [
    "README.md",
    "config.json",
    "textual/fp16/model.armnn",
    "textual/merges.txt",
    "textual/model.onnx",
    "textual/special_tokens_map.json",
    "textual/tokenizer.json",
    "textual/tokenizer_config.json",
    "textual/vocab.json",
    "visual/fp16/model.armnn",
    "visual/model.onnx",
    "visual/preprocess_cfg.json",
]
ONE_GRAPH = [
    "config.json",
    "merges.txt",
    "onnx/model.onnx",
    "onnx/model_fp16.onnx",
    "onnx/model_int8.onnx",
    "onnx/model_quantized.onnx",
    "preprocessor_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
]
EXTERNAL = [
    "config.json",
    "onnx/text_model.onnx",
    "onnx/text_model.onnx_data",
    "onnx/text_model_fp16.onnx",
    "onnx/vision_model.onnx",
    "onnx/vision_model.onnx_data",
    "onnx/vision_model.onnx_data_1",
    "preprocessor_config.json",
    "tokenizer.json",
]
DINOV2 = ["config.json", "onnx/model.onnx", "onnx/model_fp16.onnx", "preprocessor_config.json"]
QDRANT_TEXT = ["config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.json"]
TORCH = [
    "config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "vocab.json",
]


def test_two_graphs():
    assert image_side(XENOVA_CLIP).names == (
        "onnx/vision_model.onnx", "preprocessor_config.json", "config.json",
    )  # fmt: skip
    assert text_side(XENOVA_CLIP).names == (
        "onnx/text_model.onnx", "tokenizer.json",
        "config.json", "tokenizer_config.json", "special_tokens_map.json",
    )  # fmt: skip


def test_two_folders_of_open_clip():
    assert image_side(IMMICH).names == (
        "visual/model.onnx", "visual/preprocess_cfg.json", "config.json",
    )  # fmt: skip
    assert text_side(IMMICH).names == (
        "textual/model.onnx", "textual/tokenizer.json", "config.json",
        "textual/tokenizer_config.json", "textual/special_tokens_map.json",
    )  # fmt: skip


def test_one_graph_for_both_sides():
    assert image_side(ONE_GRAPH).graph == text_side(ONE_GRAPH).graph == "onnx/model.onnx"


def test_external_weights_belong_to_their_graph():
    weights = ("onnx/vision_model.onnx_data", "onnx/vision_model.onnx_data_1")
    assert image_side(EXTERNAL).others[:2] == weights
    assert text_side(EXTERNAL).others[0] == "onnx/text_model.onnx_data"


def test_one_side_alone():
    assert image_side(DINOV2).graph == "onnx/model.onnx"
    assert text_side(DINOV2) is None
    assert image_side(QDRANT_TEXT) is None
    assert text_side(QDRANT_TEXT).graph == "model.onnx"
    assert image_side(TORCH) is text_side(TORCH) is None


def test_half_precision_is_used_if_there_is_nothing_else_and_8_bits_never():
    halves = [name for name in XENOVA_CLIP if not name.endswith("model.onnx")]
    assert image_side(halves).graph == "onnx/vision_model_fp16.onnx"
    assert text_side(halves).graph == "onnx/text_model_fp16.onnx"
    bytes_only = [name for name in halves if "fp16" not in name]
    assert image_side(bytes_only) is text_side(bytes_only) is None


@pytest.mark.parametrize("name", ["Qdrant/clip-ViT-B-32-vision", "Qdrant/clip-ViT-B-32-text"])
def test_a_tower_has_a_sibling(name):
    pair = ("Qdrant/clip-ViT-B-32-vision", "Qdrant/clip-ViT-B-32-text")
    assert tower_names(name) == pair
    assert tower_names("visual") == tower_names("textual") == ("visual", "textual")
    assert tower_names("owner/supervision") is None
    assert tower_names("owner/model") is None


def test_folders_of_towers_are_found_from_each_and_from_above(tiny, tmp_path):
    parent = tiny.exported(layout="two_folders", source=tiny.clip())
    for start in (parent, parent / "clip-vision", parent / "clip-text"):
        found = find_onnx(start)
        assert found.image_folder == parent / "clip-vision"
        assert found.text_folder == parent / "clip-text"
    lonely = shutil.copytree(parent / "clip-vision", tmp_path / "clip-vision")
    assert find_onnx(lonely) is None
    assert find_onnx(lonely, images_only=True).text is None


def test_a_checkpoint_of_transformers_is_no_export(tiny):
    assert find_onnx(tiny.clip()) is None
