"""A model that sees colours alone, and a data set of three colours that nouns can name."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from nouncut.models.encoder import Encoder
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.setup import BenchSetup
from nouncut.paper.datasets.catalog import load_dataset
from nouncut.store.store import FeatureStore
from nouncut.words.prompts import PROMPTS

WORDS = ("red", "green", "blue", "cat", "dog", "sea", "door", "rose", "reds", "ship", "tree", "sun")


class Colours(Encoder):
    """An image is its mean colour, a text its hash; names of colours point at their colour."""

    name, fingerprint = "colours", "colours-1"
    image_dim = text_dim = 8
    tau = 0.2

    def __init__(self):
        self.n_images = self.n_texts = 0

    def prepare(self, image):
        pixels = np.asarray(image.resize((8, 8)), dtype=np.float32) / 255
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def encode_prepared(self, batch):
        self.n_images += len(batch)
        rows = np.zeros((len(batch), self.image_dim), dtype=np.float32)
        rows[:, :3] = batch.mean(axis=(2, 3))
        rows[:, 3:] = 0.05 * batch[:, 0, 0, :5]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):
        self.n_texts += len(texts)
        rows = np.stack([self._text(text) for text in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _text(self, text):
        digest = hashlib.sha256(text.encode()).digest()
        row = np.frombuffer(digest[: self.text_dim], dtype=np.uint8) / 255
        for axis, colour in enumerate(("red", "green", "blue")):
            row = row + 3 * (colour in text) * np.eye(self.text_dim)[axis]
        return row.astype(np.float32)


def make_setup(folder):
    return BenchSetup(Colours(), WORDS, PROMPTS, FeatureStore(folder / "cache"), folder / "out")


@pytest.fixture
def setup(tmp_path):
    return make_setup(tmp_path)


@pytest.fixture(scope="package")
def colours(tmp_path_factory, make):
    """Return a data set of three colours. Tests must not change its files."""
    folder = tmp_path_factory.mktemp("data") / "colours"
    for part, n in (("train", 10), ("test", 15)):
        make.folders(folder / part, "red", "green", "blue", n=n)
    return load_dataset(str(folder))


@pytest.fixture(scope="package")
def encoded(tmp_path_factory, colours):
    """Return the data set with features; results of one test are kept for the next."""
    return EncodedDataset(colours, make_setup(tmp_path_factory.mktemp("encoded")))
