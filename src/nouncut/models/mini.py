"""The embedded model: what a fresh machine can run from the package registry alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.rows import unit_rows
from nouncut.models.encoder import Encoder
from nouncut.words.wordnet import load_wordnet

# Raise whenever the same image or text would get another vector.
MINI_VERSION = 1
_IMAGES_AT_ONCE = {"cpu": 8, "mps": 64, "cuda": 256}
# How many of the likeliest classes say what an image means.
_LIKELIEST = 20


class MiniEncoder(Encoder):
    """EfficientNet-Lite2 for looks, MiniLM for words; not CLIP, but here at once.

    The network tells which of ImageNet's 1,000 classes an image may show. Its *visual* features
    are the logits of all classes, the collection's mean taken off. Its *semantic* features are
    the mean of the class names' sentence vectors, weighted by their probabilities: they lie in
    the space of MiniLM, where any noun can be compared with them.
    """

    centers_visual = True
    shares_space = False

    def __init__(self, *, device: str = "auto", batch_size: int | None = None) -> None:
        # torch takes seconds to import: not before a model is asked for.
        from nouncut.models.devices import BatchSize, choose_device
        from nouncut.models.efficientnet import FEATURE_DIM, class_synsets, load_efficientnet
        from nouncut.models.minilm import TEXT_DIM, MiniLM

        self.device = choose_device(device)
        self._network = load_efficientnet().to(self.device)
        self._texts = MiniLM(self.device)
        self._batch = BatchSize(batch_size or _IMAGES_AT_ONCE.get(self.device.type, 64))
        head = self._network._fc
        self._weight, self._bias = (
            parameter.detach().cpu().numpy() for parameter in (head.weight, head.bias)
        )
        synsets = load_wordnet()
        names = [", ".join(synsets[synset].words) for synset in class_synsets()]
        self._classes = self._texts.encode(names)
        self._centre = self._classes.mean(axis=0)

        self.name = "mini"
        parts = (MINI_VERSION, self._weight.tobytes(), self._texts.fingerprint)
        self.fingerprint = hashlib.sha256(repr(parts).encode()).hexdigest()
        self.image_dim, self.text_dim = FEATURE_DIM, TEXT_DIM

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """Turn an upright RGB image into the network's input."""
        from nouncut.models.efficientnet import prepare_image

        return prepare_image(image)

    def encode_prepared(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run the network on prepared images."""
        import torch

        from nouncut.models.devices import run_in_batches
        from nouncut.models.efficientnet import pooled_features

        def encode(start: int, stop: int) -> NDArray[Any]:
            with torch.inference_mode():
                pooled = pooled_features(self._network, batch[start:stop], self.device)
                return np.asarray(pooled.cpu().numpy())

        parts = run_in_batches(encode, len(batch), self._batch)
        return np.concatenate([np.empty((0, self.image_dim), dtype=np.float32), *parts])

    def encode_texts(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        """Encode texts."""
        return unit_rows(self._texts.encode(texts, progress) - self._centre)

    def visual(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the logits of all classes."""
        return self._logits(rows)

    def semantic(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return what the likeliest classes mean."""
        logits = self._logits(rows)
        floor = np.partition(logits, -_LIKELIEST, axis=1)[:, -_LIKELIEST, None]
        weights = np.where(logits >= floor, np.exp(logits - logits.max(axis=1, keepdims=True)), 0)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ (self._classes - self._centre))

    def _logits(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rows @ self._weight.T + self._bias)
