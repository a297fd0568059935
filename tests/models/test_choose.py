from __future__ import annotations

import shutil

import pytest

from nouncut.errors import ModelError
from nouncut.models.choose import list_models, load_encoder


def test_auto_is_the_embedded_model_if_clip_cannot_be_downloaded(hub):
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert "not CLIP" in reason
    assert "could not be downloaded" in reason
    with pytest.raises(ModelError, match="could not be downloaded"):
        load_encoder("ViT-B/32", device="cpu")


def test_auto_is_clip_if_it_can_be_downloaded(tiny, hub):
    shutil.copytree(tiny.clip(), hub.root / "openai" / "clip-vit-base-patch32")
    assert not any(model.ready for model in list_models()[1:])
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "ViT-B/32"
    assert reason.startswith("CLIP")
    assert {model.name for model in list_models() if model.ready} == {"mini", "ViT-B/32"}


def test_a_broken_clip_is_not_replaced_silently(tiny, hub):
    folder = shutil.copytree(tiny.clip(), hub.root / "openai" / "clip-vit-base-patch32")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match=r"preprocessor_config\.json"):
        load_encoder("auto", device="cpu")
