from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.models.clip import ClipEncoder, _unpack_patches
from nouncut.models.preprocess import read_preprocessing

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
    "oblong": transformers.SiglipImageProcessorPil(size={"height": 20, "width": 37}),
}
KINDS = ["clip", "siglip", "siglip2", "chinese_clip"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROCESSORS)
def test_prepared_images_equal_the_models_own(tiny, tmp_path, name, size):
    processor = PROCESSORS[name]
    processor.save_pretrained(tmp_path)
    image = tiny.photo(*size)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    prepared = read_preprocessing(tmp_path)(image)
    assert prepared.dtype == np.float32
    np.testing.assert_allclose(prepared, expected, atol=1e-5)


@given(width=st.integers(1, 400), height=st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_any_size_equals_the_models_own(tiny, tmp_path_factory, width, height):
    folder = tmp_path_factory.mktemp("processor")
    for name in ("small crop", "siglip"):
        PROCESSORS[name].save_pretrained(folder)
        image = tiny.photo(width, height)
        expected = PROCESSORS[name](image, return_tensors="np")["pixel_values"][0]
        np.testing.assert_allclose(read_preprocessing(folder)(image), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_other_modes_are_turned_into_rgb(tiny, tmp_path, mode):
    processor = PROCESSORS["clip"]
    processor.save_pretrained(tmp_path)
    image = tiny.photo(50, 70).convert(mode)
    expected = processor(image.convert("RGB"), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(read_preprocessing(tmp_path)(image), expected, atol=1e-5)


@pytest.mark.parametrize("size", [(1, 350), (350, 1)])
def test_thin_strips_do_not_fill_the_memory(tiny, tmp_path, size, monkeypatch):
    processor = PROCESSORS["clip"]
    processor.save_pretrained(tmp_path)
    image = tiny.photo(*size)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
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
    prepared = read_preprocessing(tmp_path)(image)
    assert resized == [(224, 224)]
    # Pillow rounds to one of 256 levels, and the other way of computing may round differently.
    assert np.abs(prepared - expected).max() < 0.016


@pytest.mark.parametrize("size", SIZES)
def test_patches_equal_the_models_own(tiny, tmp_path, size):
    processor = transformers.Siglip2ImageProcessorPil(patch_size=6, max_num_patches=20)
    processor.save_pretrained(tmp_path)
    expected = processor(tiny.photo(*size), return_tensors="pt")
    packed = read_preprocessing(tmp_path)(tiny.photo(*size))
    assert packed.shape == (3, 21, 36)
    inputs = _unpack_patches(torch.from_numpy(packed[None]))
    assert set(inputs) == set(expected)
    for name, value in inputs.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_image_features_equal_transformers(tiny, tmp_path, kind):
    folder = getattr(tiny, kind)(tmp_path)
    encoder = ClipEncoder(folder, device="cpu", batch_size=2)
    images = [tiny.photo(*size) for size in ((60, 41), (17, 30), (1, 1), (90, 33), (30, 30))]
    batch = np.stack([encoder.prepare(image) for image in images])
    batch.flags.writeable = False  # as memory-mapped arrays are
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


def test_no_images(tiny, tmp_path):
    encoder = ClipEncoder(tiny.clip(tmp_path), device="cpu")
    empty = np.empty((0, 3, tiny.IMAGE_SIZE, tiny.IMAGE_SIZE), dtype=np.float32)
    assert encoder.encode_prepared(empty).shape == (0, encoder.image_dim)


def test_running_out_of_memory_on_images_makes_smaller_batches(tiny, tmp_path, monkeypatch):
    encoder = ClipEncoder(tiny.clip(tmp_path), device="cpu", batch_size=8)
    batch = np.stack([encoder.prepare(tiny.photo(30, 30, seed)) for seed in range(11)])
    expected = encoder.encode_prepared(batch)
    run = encoder._image_features
    sizes = []

    def tight(part):
        sizes.append(len(part))
        if len(part) > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return run(part)

    monkeypatch.setattr(encoder, "_image_features", tight)
    np.testing.assert_allclose(encoder.encode_prepared(batch), expected, atol=1e-6)
    assert sizes[:3] == [8, 4, 2]
    assert set(sizes[2:]) <= {2, 1}


def test_old_preprocessor_files_are_understood(tiny, tmp_path):
    # As openai/clip-vit-base-patch32 has it.
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
    expected = PROCESSORS["clip"](image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(read_preprocessing(tmp_path)(image), expected, atol=1e-5)


def test_settings_within_a_processor_file_are_found(tiny, tmp_path):
    settings = {"image_processor": PROCESSORS["siglip"].to_dict(), "processor_class": "Any"}
    (tmp_path / "processor_config.json").write_text(json.dumps(settings, default=str))
    image = tiny.photo(33, 25)
    expected = PROCESSORS["siglip"](image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(read_preprocessing(tmp_path)(image), expected, atol=1e-5)


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
        {"image_processor_type": "CLIPImageProcessor", "size": 30},
    ],
)
def test_unknown_preprocessing_is_refused(tmp_path, settings):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"preprocessor_config\.json.*does not know"):
        read_preprocessing(tmp_path)


def test_missing_preprocessing_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"no preprocessor_config\.json"):
        read_preprocessing(tmp_path)
