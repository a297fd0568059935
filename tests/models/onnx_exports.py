"""Exports of the tiny models in the layouts that the hub has.

Imported by path from conftest.py.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

_SETTINGS = ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")
_BATCH, _TOKENS = {0: "batch_size"}, {0: "batch_size", 1: "sequence_length"}


class _Function(torch.nn.Module):
    """A module that calls a function, which is what can be exported."""

    def __init__(self, model: torch.nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(self.model, *arguments)


def export_graph(
    path: Path,
    model: torch.nn.Module,
    function: Callable[..., Any],
    inputs: dict[str, torch.Tensor],
    outputs: list[str],
    axes: dict[str, dict[int, str]],
) -> Path:
    """Write the graph of a function of a model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Function(model, function).eval(),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    return path


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    return transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").to(dtype)


def copy_settings(source: Path, target: Path, names: tuple[str, ...] = _SETTINGS) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (source / name).exists():
            shutil.copy(source / name, target / name)


def sample(folder: Path, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pixels and tokens of the right shapes."""
    config = json.loads((folder / "config.json").read_text())
    side = config.get("vision_config", config)["image_size"]
    tokens = torch.arange(3, 3 + length)[None] % 20
    return torch.rand(1, 3, side, side), tokens


def encode_image(model: Any, pixels: torch.Tensor) -> Any:
    return model.get_image_features(pixel_values=pixels).pooler_output


def encode_text(model: Any, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
    return model.get_text_features(input_ids=tokens, attention_mask=mask).pooler_output


def two_graphs(
    source: Path,
    target: Path,
    *,
    suffix: str = "",
    masked: bool = False,
    names: tuple[str, str] = ("image_embeds", "text_embeds"),
    length: int = 7,
) -> Path:
    """Export as Xenova and onnx-community do."""
    model = load(source, torch.float16 if suffix else torch.float32)
    pixels, tokens = sample(source, length)
    copy_settings(source, target)
    export_graph(
        target / f"onnx/vision_model{suffix}.onnx",
        model,
        lambda model, pixels: encode_image(model, pixels.to(model.dtype)),
        {"pixel_values": pixels.to(model.dtype)},
        [names[0]],
        {"pixel_values": _BATCH, names[0]: _BATCH},
    )
    mask = {"attention_mask": torch.ones_like(tokens)} if masked else {}
    export_graph(
        target / f"onnx/text_model{suffix}.onnx",
        model,
        encode_text,
        {"input_ids": tokens, **mask},
        [names[1]],
        {"input_ids": _TOKENS, "attention_mask": _TOKENS, names[1]: _BATCH},
    )
    return target


def open_clip(source: Path, target: Path, *, length: int) -> Path:
    """Export as Immich does: one input at a time, full length, 32-bit tokens, unit vectors."""
    model = load(source)
    pixels, tokens = sample(source, length)
    normalize = torch.nn.functional.normalize
    export_graph(
        target / "visual/model.onnx",
        model,
        lambda model, pixels: normalize(encode_image(model, pixels), dim=-1),
        {"image": pixels},
        ["embedding"],
        {},
    )
    export_graph(
        target / "textual/model.onnx",
        model,
        lambda model, tokens: normalize(encode_text(model, tokens), dim=-1),
        {"text": tokens.int()},
        ["embedding"],
        {},
    )
    copy_settings(source, target / "textual", ("tokenizer.json", "tokenizer_config.json"))
    processor = json.loads((source / "preprocessor_config.json").read_text())
    side = pixels.shape[-1]
    settings = {
        "size": [side, side],
        "mode": "RGB",
        "mean": processor["image_mean"],
        "std": processor["image_std"],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
        "fill_color": 0,
    }
    (target / "visual/preprocess_cfg.json").write_text(json.dumps(settings))
    config = {"embed_dim": 12, "text_cfg": {"context_length": length}}
    (target / "config.json").write_text(json.dumps(config))
    return target


def one_graph(source: Path, target: Path) -> Path:
    """Export both sides as one graph, as onnx-community does."""
    pixels, tokens = sample(source, 7)
    copy_settings(source, target)
    names = ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"]

    def forward(model: Any, tokens: Any, pixels: Any, mask: Any) -> Any:
        output = model(input_ids=tokens, pixel_values=pixels, attention_mask=mask)
        return tuple(output[name] for name in names)

    export_graph(
        target / "onnx/model.onnx",
        load(source),
        forward,
        {"input_ids": tokens, "pixel_values": pixels, "attention_mask": torch.ones_like(tokens)},
        names,
        {
            "input_ids": {0: "text_batch_size", 1: "sequence_length"},
            "attention_mask": {0: "text_batch_size", 1: "sequence_length"},
            "pixel_values": {0: "image_batch_size"},
        },
    )
    return target


def two_folders(source: Path, target: Path) -> Path:
    """Export each tower to a folder of its own, as Qdrant does."""
    both = two_graphs(source, target / "both")
    for ending, graph, names in (
        ("vision", "vision_model", ("preprocessor_config.json",)),
        ("text", "text_model", ("tokenizer.json", "tokenizer_config.json")),
    ):
        folder = target / f"clip-{ending}"
        copy_settings(both, folder, names)
        (both / f"onnx/{graph}.onnx").rename(folder / "model.onnx")
        config = json.loads((both / "config.json").read_text())
        section = config[f"{ending}_config"]
        kind = {"model_type": f"clip_{ending}_model", "projection_dim": config["projection_dim"]}
        (folder / "config.json").write_text(json.dumps({**section, **kind}))
    shutil.rmtree(both)
    return target


def image_model(
    source: Path, target: Path, *, outputs: tuple[str, ...], place: str = "onnx/"
) -> Path:
    """Export an image model."""
    pixels, _ = sample(source, 1)
    copy_settings(source, target)
    export_graph(
        target / f"{place}model.onnx",
        load(source),
        lambda model, pixels: tuple(model(pixel_values=pixels)[name] for name in outputs),
        {"pixel_values": pixels},
        list(outputs),
        {"pixel_values": _BATCH, **dict.fromkeys(outputs, _BATCH)},
    )
    return target
