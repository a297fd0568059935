"""The interface of all encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.errors import ParameterError
from nouncut.words.prompts import fill_template


class ImageEncoder(ABC):
    """A model that turns images into vectors.

    Making an encoder reads small files only. Weights are loaded by the first call that needs them.
    """

    name: str
    # Equal for equal weights, preprocessing and precision; part of the store's keys.
    fingerprint: str
    image_dim: int
    # Pixels that the short side of an image is scaled to; larger files may be opened smaller.
    input_side: int | None = None
    # Whether visual features should be half-whitened; see `nouncut.method.whitening`.
    whitens_visual: bool = False

    @abstractmethod
    def prepare(self, image: Image.Image) -> NDArray[Any]:
        """Turn an upright RGB image into the model's input; must be thread-safe."""

    @abstractmethod
    def encode_prepared(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Return (n, image_dim) rows of n prepared images."""

    def visual(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return vectors that compare images with each other."""
        return rows


class Encoder(ImageEncoder):
    """A model that turns images and texts into vectors.

    An image is stored as one row. Two vectors are computed from it: `visual` compares images with
    each other, `semantic` compares images with texts. In the CLIP family both are the row itself.
    The weights for images and those for texts are loaded separately.
    """

    text_dim: int
    # Whether the model was trained to place images and texts in one space, as CLIP was.
    shares_space: bool = True
    # Published temperature of the softmax over nouns, if any.
    tau: float | None = None

    @abstractmethod
    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, text_dim) unit rows of n texts."""

    def encode_nouns(self, nouns: Sequence[str], template: str = "{}") -> NDArray[np.float32]:
        """Return (n, text_dim) unit rows of n nouns in a prompt."""
        return self.encode_texts(fill_template(template, nouns))

    def unknown_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that mean nothing to the model, as far as that is known."""
        return []

    def semantic(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return vectors that compare images with texts."""
        return rows

    def known_synsets(self) -> Sequence[str]:
        """Return the WordNet synsets that the model classifies images into, if it does."""
        return ()

    def synset_probabilities(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return (n, n_synsets) probabilities of the `known_synsets`."""
        return np.empty((len(rows), 0), dtype=np.float32)


def check_texts(texts: Sequence[str]) -> None:
    """Raise for one text where several are expected."""
    if isinstance(texts, str):
        raise ParameterError("`texts` must be a sequence of str; got one str: pass [text].")
