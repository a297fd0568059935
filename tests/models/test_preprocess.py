from __future__ import annotations

import json

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.errors import ModelError
from nouncut.models.preprocess import read_preprocessing, settings_file, unpack_patches

SIZES = [
    (1, 1), (1, 7), (9, 1), (2, 300), (301, 3), (30, 30), (29, 31), (31, 29), (17, 23),
    (224, 224), (225, 333), (640, 427), (5, 1200),
]  # fmt: skip
PROCESSORS = {
    "clip": transformers.CLIPImageProcessorPil(),
    "small crop": transformers.CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size=33),
    "crop beyond the image": transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 33}, crop_size={"height": 41, "width": 52}
    ),
    "bilinear": transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 31}, crop_size=31, resample=2
    ),
    "crop only": transformers.CLIPImageProcessorPil(do_resize=False, crop_size=20),
    "raw": transformers.CLIPImageProcessorPil(do_rescale=False, do_normalize=False),
    "siglip": transformers.SiglipImageProcessorPil(),
    "bit": transformers.BitImageProcessorPil(size={"shortest_edge": 37}, crop_size=33),
    "vit": transformers.ViTImageProcessorPil(),
    "deit": transformers.DeiTImageProcessorPil(),
    "convnext, cropped": transformers.ConvNextImageProcessorPil(size={"shortest_edge": 30}),
    "convnext": transformers.ConvNextImageProcessorPil(),
    "oblong": transformers.SiglipImageProcessorPil(size={"height": 20, "width": 37}),
}


@pytest.fixture(scope="module")
def preprocessing(tmp_path_factory):
    """Return our preprocessing for every processor."""
    root = tmp_path_factory.mktemp("processors")
    for name, processor in PROCESSORS.items():
        processor.save_pretrained(root / name)
    return {name: read_preprocessing(settings_file(root / name)) for name in PROCESSORS}


def expected_input(name, image):
    return PROCESSORS[name](image, return_tensors="np")["pixel_values"][0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROCESSORS)
def test_inputs_equal_those_of_transformers(tiny, preprocessing, name, size):
    image = tiny.photo(*size)
    prepared = preprocessing[name](image)
    assert prepared.dtype == np.float32
    np.testing.assert_allclose(prepared, expected_input(name, image), atol=1e-5)


@given(width=st.integers(1, 400), height=st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_inputs_of_any_size_equal_those_of_transformers(tiny, preprocessing, width, height):
    image = tiny.photo(width, height)
    for name in ("small crop", "siglip"):
        prepared = preprocessing[name](image)
        np.testing.assert_allclose(prepared, expected_input(name, image), atol=1e-5)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_other_modes_are_turned_into_rgb(tiny, preprocessing, mode):
    image = tiny.photo(50, 70).convert(mode)
    expected = expected_input("clip", image.convert("RGB"))
    np.testing.assert_allclose(preprocessing["clip"](image), expected, atol=1e-5)


@pytest.mark.parametrize("size", [(1, 350), (350, 1)])
def test_thin_strips_do_not_fill_the_memory(tiny, preprocessing, size, monkeypatch):
    image = tiny.photo(*size)
    expected = expected_input("clip", image)
    resized = []
    resize = Image.Image.resize
    monkeypatch.setattr(
        Image.Image,
        "resize",
        lambda image, size, *args, **keys: (
            resized.append(size),
            resize(image, size, *args, **keys),
        )[1],
    )
    prepared = preprocessing["clip"](image)
    assert resized == [(224, 224)]
    # Pillow rounds to one of 256 levels; half a level of difference may become a whole one.
    assert np.abs(prepared - expected).max() < 0.016


@pytest.mark.parametrize("size", SIZES)
def test_patches_equal_those_of_transformers(tiny, tmp_path, size):
    processor = transformers.Siglip2ImageProcessorPil(patch_size=6, max_num_patches=20)
    processor.save_pretrained(tmp_path)
    expected = processor(tiny.photo(*size), return_tensors="pt")
    packed = read_preprocessing(settings_file(tmp_path))(tiny.photo(*size))
    assert packed.shape == (3, 21, 36)
    inputs = unpack_patches(packed[None])
    assert set(inputs) == set(expected)
    for name, value in inputs.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)


def test_old_preprocessor_files_are_understood(tiny, tmp_path):
    # The file of openai/clip-vit-base-patch32.
    settings = {
        "crop_size": 224,
        "do_center_crop": True,
        "do_normalize": True,
        "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor",
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "resample": 3,
        "size": 224,
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    image = tiny.photo(333, 250)
    expected = expected_input("clip", image)
    np.testing.assert_allclose(
        read_preprocessing(settings_file(tmp_path))(image), expected, atol=1e-5
    )


@pytest.mark.parametrize(
    "family", ["Bit", "CLIP", "ChineseCLIP", "ConvNext", "DeiT", "Siglip", "ViT"]
)
@pytest.mark.parametrize("kind", ["ImageProcessor", "ImageProcessorFast", "FeatureExtractor"])
def test_missing_settings_are_those_of_transformers(tiny, tmp_path, family, kind):
    key = "feature_extractor_type" if kind == "FeatureExtractor" else "image_processor_type"
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({key: family + kind}))
    processor = getattr(transformers, f"{family}ImageProcessorPil")()
    image = tiny.photo(333, 250)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    prepared = read_preprocessing(settings_file(tmp_path))(image)
    np.testing.assert_allclose(prepared, expected, atol=1e-5)


def test_one_number_for_the_size_is_understood_as_by_transformers(tiny, tmp_path):
    # The file of google/vit-base-patch16-224.
    settings = {
        "do_normalize": True,
        "do_resize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_processor_type": "ViTImageProcessor",
        "image_std": [0.5, 0.5, 0.5],
        "size": 224,
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    image = tiny.photo(333, 250)
    prepared = read_preprocessing(settings_file(tmp_path))(image)
    np.testing.assert_allclose(prepared, expected_input("vit", image), atol=1e-5)


@pytest.mark.parametrize("mode", ["shortest", "squash"])
@pytest.mark.parametrize("size", [33, [33, 33]])
def test_settings_of_open_clip_are_understood(tiny, tmp_path, mode, size):
    mean, deviation = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    settings = {
        "size": size,
        "mode": "RGB",
        "mean": mean,
        "std": deviation,
        "interpolation": "bicubic",
        "resize_mode": mode,
        "fill_color": 0,
    }
    (tmp_path / "preprocess_cfg.json").write_text(json.dumps(settings))
    if mode == "shortest":
        processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": 33}, crop_size=33)
    else:
        processor = transformers.SiglipImageProcessorPil(
            size={"height": 33, "width": 33}, image_mean=mean, image_std=deviation
        )
    image = tiny.photo(90, 61)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    prepared = read_preprocessing(tmp_path / "preprocess_cfg.json")(image)
    np.testing.assert_allclose(prepared, expected, atol=1e-5)


def test_settings_in_a_processor_file_are_found(tiny, tmp_path):
    settings = {"image_processor": PROCESSORS["siglip"].to_dict(), "processor_class": "Any"}
    (tmp_path / "processor_config.json").write_text(json.dumps(settings, default=str))
    image = tiny.photo(33, 25)
    expected = expected_input("siglip", image)
    np.testing.assert_allclose(
        read_preprocessing(settings_file(tmp_path))(image), expected, atol=1e-5
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"shortest_edge": 30}, "do_center_crop": False},
        {
            "size": {"shortest_edge": 30, "longest_edge": 40},
            "crop_size": 30,
            "do_center_crop": True,
        },
        {"size": {"max_height": 30, "max_width": 30}, "do_center_crop": False},
        {"image_processor_type": "UnknownImageProcessor", "size": 30},
        {"mean": [0, 0, 0], "std": [1, 1, 1], "size": 30, "resize_mode": "longest"},
    ],
)
def test_unknown_preprocessing_is_refused(tmp_path, settings):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=r"does not know.*preprocessor_config\.json"):
        read_preprocessing(settings_file(tmp_path))


@pytest.mark.parametrize("content", ["{", "[]", '{"image_mean": "grey", "size": 30}'])
def test_damaged_preprocessing_is_explained(tmp_path, content):
    (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(ModelError, match=r"does not know.*preprocessor_config\.json"):
        read_preprocessing(settings_file(tmp_path))


def test_missing_preprocessing_is_explained(tmp_path):
    with pytest.raises(ModelError, match=r"no preprocessor_config\.json"):
        read_preprocessing(settings_file(tmp_path))
