"""What every encoder offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


class Encoder(ABC):
    """A model that turns images and texts into vectors.

    An image becomes one row. The row may hold two vectors side by side: a *visual* one, to compare
    images by, and a *semantic* one, to compare with texts; for models of the CLIP family both are
    the same.
    """

    name: str
    fingerprint: str
    image_dim: int
    text_dim: int
    # Whether visual features tell images apart better with the collection's mean taken off.
    centers_visual: bool = False
    # Whether images and texts were trained to lie in one space, as CLIP's are.
    shares_space: bool = True
    # The temperature of the softmax over nouns that was published for the model, if any.
    tau: float | None = None

    @abstractmethod
    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """Turn an upright RGB image into the model's input.

        Called from several threads at once, ahead of the model.
        """

    @abstractmethod
    def encode_prepared(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run the model on prepared images."""

    @abstractmethod
    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts."""

    def visual(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the part of image rows that images are compared by."""
        return rows

    def semantic(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the part of image rows that is compared with texts."""
        return rows
