"""Which files of a folder or of a hub repository are an ONNX export of a model.

Exports of CLIP and similar models come in a few layouts:

- two graphs, ``onnx/vision_model.onnx`` and ``onnx/text_model.onnx`` (Xenova, onnx-community);
- two folders, ``visual/model.onnx`` and ``textual/model.onnx`` (OpenCLIP models, by Immich);
- one graph for both sides, ``onnx/model.onnx`` (onnx-community);
- two repositories, ``NAME-vision`` and ``NAME-text``, each with a ``model.onnx`` (Qdrant).

Image models have the graph ``onnx/model.onnx`` or ``model.onnx`` and no tokenizer. Graphs in
float32 are preferred to float16; 8-bit graphs are not used, since their vectors differ visibly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from nouncut.models.preprocess import SETTINGS_FILES

_PRECISIONS = ("", "_fp16")
_TOWERS = (("vision", "text"), ("visual", "textual"), ("image", "text"))
_OPEN_CLIP_SETTINGS = "visual/preprocess_cfg.json"
_OPEN_CLIP_TOKENIZER = "textual/tokenizer.json"
_TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True)
class OnnxSide:
    """The files that encode images or texts, as names relative to their folder.

    `settings` describes the preprocessing of images, or is the tokenizer of texts.
    """

    graph: str
    settings: str
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self.graph, self.settings, *self.others


@dataclass(frozen=True)
class OnnxFiles:
    """An ONNX export on this machine; image models have no text side."""

    image_folder: Path
    image: OnnxSide
    text_folder: Path | None = None
    text: OnnxSide | None = None


def list_files(folder: Path) -> set[str]:
    """Return the names of the files in a folder and in its subfolders, not deeper."""
    paths = (path for pattern in ("*", "*/*") for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix() for path in paths if path.is_file()}


def image_side(names: Collection[str]) -> OnnxSide | None:
    """Return the files that encode images, if they are among these names."""
    if _OPEN_CLIP_SETTINGS in names and "visual/model.onnx" in names:
        return _side("visual/model.onnx", _OPEN_CLIP_SETTINGS, names)
    settings = next((name for name in SETTINGS_FILES if name in names), None)
    graph = next((name for name in _graph_names("vision_model") if name in names), None)
    return _side(graph, settings, names) if graph and settings else None


def text_side(names: Collection[str]) -> OnnxSide | None:
    """Return the files that encode texts, if they are among these names."""
    if _OPEN_CLIP_TOKENIZER in names and "textual/model.onnx" in names:
        return _side("textual/model.onnx", _OPEN_CLIP_TOKENIZER, names)
    graph = next((name for name in _graph_names("text_model") if name in names), None)
    return _side(graph, "tokenizer.json", names) if graph and "tokenizer.json" in names else None


def tower_names(name: str) -> tuple[str, str] | None:
    """Return the names of the image tower and the text tower, given the name of one of them."""
    for pair in _TOWERS:
        for ending in pair:
            if re.search(rf"(^|[-_/]){ending}$", name):
                stem = name.removesuffix(ending)
                return stem + pair[0], stem + pair[1]
    return None


def find_onnx(folder: Path, *, images_only: bool = False) -> OnnxFiles | None:
    """Return the ONNX export in a folder, or in two folders for one tower each."""
    names = list_files(folder)
    image, text = image_side(names), text_side(names)
    if image and (images_only or text):
        return OnnxFiles(folder, image, folder if text else None, text)
    for image_folder, text_folder in _tower_folders(folder):
        image, text = (
            image_side(list_files(image_folder)),
            text_side(list_files(text_folder)),
        )
        if image and text:
            return OnnxFiles(image_folder, image, text_folder, text)
    return None


def _graph_names(tower: str) -> Iterator[str]:
    for stem in (tower, "model"):
        for folder in ("onnx/", ""):
            for precision in _PRECISIONS:
                yield f"{folder}{stem}{precision}.onnx"


def _side(graph: str, settings: str, names: Collection[str]) -> OnnxSide:
    folder = settings[: settings.rfind("/") + 1]
    described = ["config.json"]
    if settings.endswith("tokenizer.json"):
        described += [folder + name for name in _TOKENIZER_SETTINGS]
    # Weights outside of the graph: model.onnx_data, model.onnx_data_1, model.onnx.data.
    weights = sorted(name for name in names if re.match(re.escape(graph) + r"[._]data", name))
    return OnnxSide(graph, settings, (*weights, *(name for name in described if name in names)))


def _tower_folders(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield pairs of folders, beside a tower's folder or in a folder with both."""
    folder = folder.absolute()
    inside = sorted(child for child in folder.iterdir() if child.is_dir())
    for tower in (folder, *inside):
        if pair := tower_names(tower.name):
            image, text = (tower.parent / name for name in pair)
            if image.is_dir() and text.is_dir():
                yield image, text
