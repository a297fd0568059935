"""What the configuration of a dual encoder says, whichever runtime runs it."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nouncut.errors import ModelError, printable_path

# Trained on lower-case texts, padded to the full length, with attention to the padding.
SIGLIP_TYPES = ("siglip", "siglip2")
# Defaults of transformers, which writes only what differs from them.
_PROJECTION_DIM = {"clip": 512, "chinese_clip": 512, "metaclip_2": 512}
_HIDDEN_SIZE = 768
_CONTEXT = {"clip": 77, "metaclip_2": 77, "siglip": 64, "siglip2": 64}
_PUNCTUATION = str.maketrans("_", " ", string.punctuation.replace("_", ""))


class Dimensions(NamedTuple):
    """The dimensions of image and text vectors."""

    image: int
    text: int


def read_json(path: Path) -> dict[str, Any]:
    """Read an object from a JSON file of a model."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{printable_path(path)} cannot be read ({error}). Save or download the model again."
        ) from error
    if not isinstance(value, dict):
        raise ModelError(
            f"{printable_path(path)} holds no JSON object. Save or download the model again."
        )
    return value


def model_type(config: Mapping[str, Any]) -> str:
    """Return the family of a model: "clip", "siglip" or another type of transformers."""
    if "text_cfg" in config:
        # OpenCLIP's own format names no family; only SigLIP models have a bias.
        return "siglip" if "init_logit_bias" in config else "clip"
    kind = str(config.get("model_type", ""))
    return re.sub(r"_(vision|text)_model$", "", kind)


def is_dual(config: Mapping[str, Any]) -> bool:
    """Tell whether a configuration of transformers is of a model for images and texts."""
    return "text_config" in config or model_type(config) in (*_PROJECTION_DIM, *SIGLIP_TYPES)


def embedding_dims(config: Mapping[str, Any]) -> Dimensions | None:
    """Return the dimensions that a configuration of transformers implies, if it does."""
    kind = model_type(config)
    if kind in SIGLIP_TYPES:
        text = _section(config, "text_config")
        vision = _section(config, "vision_config")
        hidden = text.get("hidden_size", _HIDDEN_SIZE)
        return Dimensions(
            int(vision.get("hidden_size", _HIDDEN_SIZE)), int(text.get("projection_size") or hidden)
        )
    joint = config.get("projection_dim", _PROJECTION_DIM.get(kind))
    return None if joint is None else Dimensions(int(joint), int(joint))


def context_length(config: Mapping[str, Any]) -> int | None:
    """Return the number of tokens that the text side can take, if a configuration says it."""
    for section, key in (
        ("text_cfg", "context_length"),
        ("text_config", "max_position_embeddings"),
    ):
        if isinstance(length := _section(config, section).get(key), int):
            return length
    if isinstance(length := config.get("max_position_embeddings"), int):
        return length
    return _CONTEXT.get(model_type(config))


def published_tau(config: Mapping[str, Any]) -> float | None:
    """Return the paper's temperature, which is for CLIP: SigLIP's cosines have another range."""
    return 0.04 if model_type(config) == "clip" else None


def clean_text(text: str, config: Mapping[str, Any]) -> str:
    """Write a text as in the model's training."""
    settings = _section(_section(config, "text_cfg"), "tokenizer_kwargs")
    if settings.get("clean") == "canonicalize":
        return " ".join(text.translate(_PUNCTUATION).lower().split())
    return text.lower() if model_type(config) in SIGLIP_TYPES else text


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}
