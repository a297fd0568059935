"""The embedded model, whose weights are installed with pip: no download from a hub."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.rows import unit_rows
from nouncut.models.encoder import Encoder
from nouncut.words.wordnet import load_wordnet

# Increase it when the vector of an image or a text changes.
MINI_VERSION = 1
_IMAGES_AT_ONCE = {"cpu": 8, "mps": 64, "cuda": 256}
# Semantic features are a mean over this many classes.
_TOP_CLASSES = 20


class MiniEncoder(Encoder):
    """EfficientNet-Lite2 for images and MiniLM for texts; not CLIP, but always available.

    Visual features are the logits of ImageNet's 1,000 classes. Semantic features are the mean of
    the class names' sentence vectors, weighted by the probabilities of the classes: they lie in
    MiniLM's space, in which they can be compared with any noun.
    """

    centers_visual = True
    shares_space = False

    def __init__(self, *, device: str = "auto") -> None:
        # torch takes seconds to import, so only a model that is loaded imports it.
        from nouncut.models.efficientnet import FEATURE_DIM, class_synsets, load_efficientnet
        from nouncut.models.minilm import TEXT_DIM, MiniLM
        from nouncut.models.torch_devices import BatchSize, choose_device

        self.device = choose_device(device)
        self._network = load_efficientnet().to(self.device)
        self._texts = MiniLM(self.device)
        self._batch = BatchSize(_IMAGES_AT_ONCE.get(self.device.type, 64))
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
        """Crop, resize and normalise an upright RGB image."""
        from nouncut.models.efficientnet import prepare_image

        return prepare_image(image)

    def encode_prepared(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the (n, 1280) features before the classification layer."""
        import torch

        from nouncut.models.efficientnet import pooled_features
        from nouncut.models.torch_devices import run_in_batches

        def encode(start: int, stop: int) -> NDArray[Any]:
            with torch.inference_mode():
                pooled = pooled_features(self._network, batch[start:stop], self.device)
                return np.asarray(pooled.cpu().numpy())

        parts = run_in_batches(encode, len(batch), self._batch)
        return np.concatenate([np.empty((0, self.image_dim), dtype=np.float32), *parts])

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, 384) unit rows, relative to the mean of all class names."""
        return unit_rows(self._texts.encode(texts) - self._centre)

    def visual(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the (n, 1000) logits of all classes."""
        return self._logits(rows)

    def semantic(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return (n, 384) means of the names of the most probable classes."""
        logits = self._logits(rows)
        floor = np.partition(logits, -_TOP_CLASSES, axis=1)[:, -_TOP_CLASSES, None]
        weights = np.where(logits >= floor, np.exp(logits - logits.max(axis=1, keepdims=True)), 0)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ (self._classes - self._centre))

    def _logits(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rows @ self._weight.T + self._bias)
