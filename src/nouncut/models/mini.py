"""The embedded model, whose weights are installed with pip: no download from a hub."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.softmax import softmax_rows
from nouncut.models.efficientnet import (
    FEATURE_DIM,
    SHORT_SIDE,
    Classifier,
    Network,
    class_synsets,
    load_weights,
    prepare_image,
    weights_file,
)
from nouncut.models.encoder import Encoder
from nouncut.models.runtime import run_in_parallel
from nouncut.models.word_table import WORD_DIM, WordTable
from nouncut.words.prompts import fill_template

if TYPE_CHECKING:
    from nouncut.models.meaning import MeaningSpace

# Increase it when the vector of an image or a text changes.
MINI_VERSION = 2
# Larger batches do not fit the cache of a core.
_IMAGES_AT_ONCE = 2
# Semantic features are a mean over this many classes.
_TOP_CLASSES = 20


class MiniEncoder(Encoder):
    """EfficientNet-Lite2 for images, word vectors and WordNet for texts; not CLIP.

    Visual features are the roots of the features before the classifier. Semantic features are the
    mean of the classes' vectors in the space of meanings, weighted by the probabilities of the
    classes.
    """

    name = "mini"
    image_dim = FEATURE_DIM
    input_side = SHORT_SIDE
    # The word table's vectors, and the ancestors that several classes share.
    text_dim = WORD_DIM + 471
    whitens_visual = True
    shares_space = False

    def __init__(self) -> None:
        self._words = WordTable()
        total = hashlib.sha256(str(MINI_VERSION).encode())
        for path in (weights_file(), *self._words.files):
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        self.fingerprint = total.hexdigest()

    def prepare(self, image: Image.Image) -> NDArray[np.uint8]:
        """Crop and resize an upright RGB image."""
        return prepare_image(image)

    def encode_prepared(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Return the (n, 1280) features before the classification layer."""
        network = self._network
        return run_in_parallel(
            lambda start, stop: network.pooled_features(batch[start:stop]),
            (len(batch), FEATURE_DIM),
            _IMAGES_AT_ONCE,
        )

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows of n texts."""
        return self._meanings.encode(texts)

    def encode_nouns(self, nouns: Sequence[str], template: str = "{}") -> NDArray[np.float32]:
        """Return unit rows of n nouns in a prompt; what the prompt adds is left to the words."""
        return self._meanings.encode(fill_template(template, nouns), nouns)

    def unknown_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the texts of which the model knows no word."""
        return self._meanings.unknown(texts)

    def visual(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the (n, 1280) roots of the features, which are positive and have heavy tails."""
        return np.asarray(np.sqrt(np.maximum(rows, 0)))

    def semantic(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the means of the vectors of the most probable classes."""
        logits = self._classifier.logits(rows)
        floor = np.partition(logits, -_TOP_CLASSES, axis=1)[:, -_TOP_CLASSES, None]
        weights = np.where(logits >= floor, np.exp(logits - logits.max(axis=1, keepdims=True)), 0)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ self._meanings.classes)

    def known_synsets(self) -> Sequence[str]:
        """Return the synsets of ImageNet's 1,000 classes."""
        return class_synsets()

    def synset_probabilities(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the (n, 1000) probabilities of all classes."""
        probabilities = self._classifier.logits(rows).astype(np.float32)
        softmax_rows(probabilities, 1.0)
        return probabilities

    @cached_property
    def _meanings(self) -> MeaningSpace:
        # Its libraries are needed only where images meet words.
        from nouncut.models.meaning import MeaningSpace

        return MeaningSpace(class_synsets(), self._words)

    @cached_property
    def _network(self) -> Network:
        return Network(load_weights())

    @cached_property
    def _classifier(self) -> Classifier:
        return Classifier(load_weights())
