from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.models.torch_clip import TorchClipEncoder
from nouncut.models.torch_text import CausalTextTower, PlainTextTower

PROMPTS = ("a photo of the {}.", "a photo of a {}.", "a {} in a video game.", "art of the {}.")
NOUNS = ("cat", "sea cat", "sea dog", "do", "x", "photo of the sea", "Zürich 日本", "cat")
TEXTS = [prompt.format(noun) for prompt in PROMPTS for noun in NOUNS]


@pytest.fixture(scope="module")
def folder(tiny):
    return tiny.clip(hidden_act="quick_gelu")


@pytest.fixture(scope="module")
def encoder(folder):
    return TorchClipEncoder(folder, device="cpu")


def with_small_groups(encoder):
    """Let even two texts share their prefix."""
    encoder._text_tower.smallest_group = 2
    encoder._text_tower.smallest_batch = 1
    return encoder


@pytest.mark.parametrize("smallest", [1, 2, 5, 1000])
def test_fast_text_equals_padded_text(tiny, folder, encoder, smallest):
    encoder._text_tower.smallest_group = smallest
    encoder._text_tower.smallest_batch = smallest
    features = encoder.encode_texts(TEXTS)
    assert isinstance(encoder._text_tower, CausalTextTower)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, tiny.oracle_texts(folder, TEXTS), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-6)


@given(
    texts=st.lists(
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["", "a photo of the ", "a photo of ", "<|endoftext|>", "a "]),
            st.text(max_size=12)
            | st.sampled_from(["cat", "sea", "photo " * 30, "x<|endoftext|>y"]),
            st.sampled_from(["", ".", " in a video game.", " the"]),
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_texts_equal_padded_texts(tiny, folder, encoder, texts):
    features = with_small_groups(encoder).encode_texts(texts)
    np.testing.assert_allclose(features, tiny.oracle_texts(folder, texts), atol=1e-4)


def test_long_texts_are_truncated_as_the_tokenizer_does(tiny, folder, encoder):
    texts = ["photo of the " * n + "x" for n in range(6, 12)]
    assert len(tiny.clip_tokenizer()(texts[-1])["input_ids"]) > tiny.CONTEXT
    np.testing.assert_allclose(
        encoder.encode_texts(texts), tiny.oracle_texts(folder, texts), atol=1e-5
    )


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
@pytest.mark.parametrize("eos_token_id", [None, 2])
def test_activation_and_end_token_come_from_the_config(tiny, activation, eos_token_id):
    end = {} if eos_token_id is None else {"eos_token_id": eos_token_id}
    folder = tiny.clip(hidden_act=activation, **end)
    features = with_small_groups(TorchClipEncoder(folder, device="cpu")).encode_texts(TEXTS)
    np.testing.assert_allclose(features, tiny.oracle_texts(folder, TEXTS), atol=1e-5)


def test_activations_differ(tiny):
    folders = [tiny.clip(hidden_act=activation) for activation in ("quick_gelu", "gelu")]
    features = [TorchClipEncoder(path, device="cpu").encode_texts(TEXTS[:2]) for path in folders]
    assert np.abs(features[0] - features[1]).max() > 1e-3


@pytest.mark.parametrize("end", [{}, {"eos_token_id": 2}])
def test_metaclip_uses_its_end_token_whatever_its_number(tiny, end):
    folder = tiny.clip(kind="MetaClip2", **end)
    encoder = with_small_groups(TorchClipEncoder(folder, device="cpu"))
    assert isinstance(encoder._text_tower, CausalTextTower)
    texts = [*TEXTS, "a cat ## b"]  # the first # has the number 2
    expected = tiny.oracle_texts(folder, texts)
    np.testing.assert_allclose(encoder.encode_texts(texts), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "with_mask"),
    [("siglip", False), ("siglip2", False), ("chinese_clip", True)],
)
def test_other_towers_equal_transformers(tiny, kind, with_mask):
    folder = getattr(tiny, kind)()
    encoder = TorchClipEncoder(folder, device="cpu")
    texts = ["a photo of a cat", "x", "a photo of a cat", "photo " * 40, ""]
    assert isinstance(encoder._text_tower, PlainTextTower)
    features = encoder.encode_texts(texts)
    assert features.shape == (5, encoder.text_dim)
    expected = tiny.oracle_texts(folder, texts, with_mask=with_mask)
    np.testing.assert_allclose(features, expected, atol=1e-5)


def test_order_and_batching_do_not_change_vectors(encoder):
    alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(with_small_groups(encoder).encode_texts(TEXTS), alone, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS[::-1]), alone[::-1], atol=1e-5)


def test_running_out_of_memory_on_texts_makes_smaller_batches(encoder, monkeypatch):
    encoder._text_tower.smallest_group = 2
    encoder._text_tower.smallest_batch = 1000
    expected = encoder.encode_texts(TEXTS)
    run = CausalTextTower._run

    def tight(self, tokens, *arguments, **keywords):
        if len(tokens) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return run(self, tokens, *arguments, **keywords)

    monkeypatch.setattr(CausalTextTower, "_run", tight)
    monkeypatch.setattr(encoder, "_text_batch", type(encoder._text_batch)(1000))
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), expected, atol=1e-5)
    assert encoder._text_batch.limit < 1000
