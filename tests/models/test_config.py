from __future__ import annotations

import pytest
import transformers

from nouncut.errors import ModelError
from nouncut.models.config import (
    Dimensions,
    clean_text,
    context_length,
    embedding_dims,
    is_dual,
    model_type,
    published_tau,
    read_json,
)

OPEN_CLIP = {"embed_dim": 512, "text_cfg": {"context_length": 77, "width": 512}}
OPEN_SIGLIP = {
    "embed_dim": 768,
    "init_logit_bias": -10,
    "text_cfg": {"context_length": 64, "tokenizer_kwargs": {"clean": "canonicalize"}},
}


@pytest.mark.parametrize("kind", ["CLIP", "ChineseCLIP", "MetaClip2", "Siglip", "Siglip2"])
def test_defaults_are_those_of_transformers(kind):
    config = getattr(transformers, f"{kind}Config")()
    dims = embedding_dims({"model_type": config.model_type})
    joint = getattr(config, "projection_dim", config.vision_config.hidden_size)
    assert dims == Dimensions(joint, joint)
    if kind != "ChineseCLIP":  # its texts are as long as BERT's
        length = config.text_config.max_position_embeddings
        assert context_length({"model_type": config.model_type}) == length
    assert is_dual({"model_type": config.model_type})


def test_sizes_in_the_configuration_are_read():
    siglip = {
        "model_type": "siglip",
        "text_config": {"hidden_size": 8, "projection_size": 9, "max_position_embeddings": 5},
        "vision_config": {"hidden_size": 9},
    }
    assert embedding_dims(siglip) == Dimensions(9, 9)
    assert context_length(siglip) == 5
    tower = {"model_type": "clip_text_model", "max_position_embeddings": 33, "projection_dim": 7}
    assert model_type(tower) == "clip"
    assert context_length(tower) == 33
    assert embedding_dims(tower) == Dimensions(7, 7)
    assert embedding_dims({"model_type": "unheard"}) is None
    assert context_length({"model_type": "unheard"}) is None
    assert not is_dual({"model_type": "dinov2"})


def test_the_format_of_open_clip_is_understood():
    assert (model_type(OPEN_CLIP), context_length(OPEN_CLIP)) == ("clip", 77)
    assert (model_type(OPEN_SIGLIP), context_length(OPEN_SIGLIP)) == ("siglip", 64)
    assert published_tau(OPEN_CLIP) == 0.04
    assert published_tau(OPEN_SIGLIP) is None


def test_texts_are_written_as_in_training():
    text = "A Photo of_the  Cat's «toy»!"
    assert clean_text(text, {"model_type": "clip"}) == text
    assert clean_text(text, OPEN_CLIP) == text
    assert clean_text(text, {"model_type": "siglip"}) == text.lower()
    assert clean_text(text, OPEN_SIGLIP) == "a photo of the cats «toy»"


@pytest.mark.parametrize("content", ["", "{", "[1]", '"text"', "[" * 100_000])
def test_a_damaged_file_is_explained(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=r"config\.json.*again"):
        read_json(path)
