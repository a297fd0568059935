from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from nouncut.errors import ModelError
from nouncut.models.efficientnet import class_synsets
from nouncut.models.meaning import MeaningSpace
from nouncut.models.mini import MiniEncoder
from nouncut.models.word_table import WORD_DIM, WordTable

TEXTS = ["cat", "a photo of the large golden retriever.", "cat", "ice cream", "Zürich", "猫"]


@pytest.fixture(scope="module")
def words() -> WordTable:
    return WordTable()


@pytest.fixture(scope="module")
def space(words) -> MeaningSpace:
    return MeaningSpace(class_synsets(), words)


def test_word_vectors_equal_those_of_wordllama(words):
    # The classes behind its loader, which would ask the network for a tokenizer.
    from tokenizers import Tokenizer
    from wordllama.config import Config
    from wordllama.inference import WordLlamaInference

    (vectors,) = load_file(words.files[0]).values()
    tokenizer = Tokenizer.from_file(str(words.files[1]))
    original = WordLlamaInference(vectors, Config.l2_supercat, tokenizer)
    np.testing.assert_allclose(words.encode(TEXTS), original.embed(TEXTS, norm=True), atol=1e-5)


def test_texts_without_tokens_are_zero(words):
    np.testing.assert_array_equal(words.encode(["", "cat"]).any(axis=1), [False, True])
    assert words.encode([]).shape == (0, WORD_DIM)


def test_texts_are_unit_rows_and_do_not_depend_on_each_other(space):
    rows = space.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    alone = np.concatenate([space.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(rows, alone, atol=1e-6)
    assert rows.dtype == np.float32


def test_dimension_is_the_declared_one(space):
    assert space.classes.shape == (1000, MiniEncoder.text_dim)
    assert space.encode(["cat"]).shape == (1, MiniEncoder.text_dim)


def test_classes_are_centred(space):
    np.testing.assert_allclose(space.classes.mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "near", "far"),
    [
        ("crane", "heron", "banana"),
        ("carrots", "cucumber", "truck"),
        ("Clay-colored Sparrow", "finch", "sofa"),
        ("Brewer Blackbird", "robin", "lawn mower"),
    ],
)
def test_names_are_near_what_they_are(space, name, near, far):
    own, close, distant = space.encode([name, near, far])
    assert own @ close > own @ distant + 0.1


def test_unknown_words_are_told_apart(space):
    texts = ["Oatghurt", "cat", "zwrtkx", "running", "hot dogs", "oat milk"]
    assert space.unknown(texts) == ["Oatghurt", "zwrtkx"]


@pytest.mark.parametrize(
    ("position", "content", "message"),
    [
        (0, b"\xff" * 20, "HeaderTooLarge|header"),
        (0, save({"table": np.zeros((3, 4), dtype=np.float32)}), r"shape is \(3, 4\)"),
        (1, b"{}", ""),
        (1, b"", ""),
    ],
)
def test_damaged_files_are_named(tmp_path, position, content, message):
    words = WordTable()
    files = list(words.files)
    files[position] = tmp_path / "damaged"
    files[position].write_bytes(content)
    words.files = tuple(files)
    with pytest.raises(ModelError, match=rf"damaged.*{message}.*--force-reinstall wordllama"):
        words.encode(["cat"])
