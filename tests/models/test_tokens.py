from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from tokenizers import Tokenizer

from nouncut.errors import ModelError
from nouncut.models.tokens import read_tokens

TEXTS = ["a photo of the cat.", "x", "", "photo " * 40, "Zürich 日本", "x<|endoftext|>y"]


@pytest.fixture
def folder(tiny, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny.clip() / name, tmp_path)
    return tmp_path


def change_settings(folder, **changes):
    path = folder / "tokenizer_config.json"
    settings = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in settings.items() if v is not None}))


@pytest.mark.parametrize("kind", ["clip", "siglip", "chinese_clip"])
def test_tokens_equal_those_of_transformers(tiny, kind):
    source = getattr(tiny, kind)()
    _, tokenizer = tiny.load_oracle(source)
    expected = tokenizer(
        TEXTS, padding="max_length", truncation=True, max_length=tiny.CONTEXT, return_tensors="np"
    )
    read = read_tokens(source / "tokenizer.json", {}, tiny.CONTEXT)
    tokens, mask = read.pad(read.tokenize(TEXTS), read.context)
    np.testing.assert_array_equal(tokens, expected["input_ids"])
    np.testing.assert_array_equal(mask, expected["attention_mask"])


def test_padding_may_be_on_the_left(folder):
    change_settings(folder, padding_side="left")
    read = read_tokens(folder / "tokenizer.json", {"model_type": "clip"})
    tokens, mask = read.pad([[5, 6]], 4)
    assert tokens.tolist() == [[read.pad_token, read.pad_token, 5, 6]]
    assert mask.tolist() == [[0, 0, 1, 1]]
    (folder / "tokenizer_config.json").unlink()
    assert not read_tokens(folder / "tokenizer.json", {"model_type": "clip"}).pads_left
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding(direction="left", pad_id=3)
    tokenizer.save(str(folder / "tokenizer.json"))
    read = read_tokens(folder / "tokenizer.json", {"model_type": "clip"})
    assert (read.pads_left, read.pad_token) == (True, 3)


def test_the_longest_text_is_found_in_one_of_several_places(tiny, folder):
    path = folder / "tokenizer.json"
    assert read_tokens(path, {"model_type": "clip"}, fixed=9).context == 9
    assert read_tokens(path, {"model_type": "clip"}).context == 77
    assert read_tokens(path, {}).context == tiny.CONTEXT
    change_settings(folder, model_max_length=10**30)
    with pytest.raises(ModelError, match="max_position_embeddings"):
        read_tokens(path, {})
    tokenizer = json.loads(path.read_text())
    tokenizer["truncation"] = {
        "direction": "Right", "max_length": 13, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    path.write_text(json.dumps(tokenizer))
    assert read_tokens(path, {}).context == 13


def test_the_padding_token_may_be_an_object_or_absent(folder):
    path, config = folder / "tokenizer.json", {"model_type": "clip"}
    plain = read_tokens(path, config).pad_token
    change_settings(folder, pad_token={"content": "<|endoftext|>", "lstrip": False})
    assert read_tokens(path, config).pad_token == plain > 0
    change_settings(folder, pad_token=None)
    assert read_tokens(path, config).pad_token == 0
    (folder / "tokenizer_config.json").unlink()
    assert read_tokens(path, config).pad_token == 0
