"""Dual encoders run by ONNX Runtime: CLIP, OpenCLIP, SigLIP and similar models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import ModelError, printable_path
from nouncut.models.checkpoints import hash_files
from nouncut.models.config import published_tau, read_json
from nouncut.models.encoder import Encoder, check_texts
from nouncut.models.onnx_images import OnnxImageEncoder
from nouncut.models.onnx_layouts import OnnxFiles
from nouncut.models.onnx_text import OUTPUTS, OnnxTexts
from nouncut.models.onnx_towers import LazySession, OnnxTower
from nouncut.models.preprocess import ImagePreprocessing

# Increase it when the vector of a text changes, so that stored features are not used again.
TEXT_VERSION = 1


class OnnxClipEncoder(OnnxImageEncoder, Encoder):
    """An ONNX export of CLIP, OpenCLIP, SigLIP, SigLIP 2 or a similar model."""

    def __init__(self, files: OnnxFiles, *, name: str | None = None) -> None:
        super().__init__(files, name=name)
        if files.text is None or files.text_folder is None:
            raise ModelError(
                f"The folder {str(files.image_folder)!r} holds no model and tokenizer for texts: "
                "download or export the model again."
            )
        folder, side = files.text_folder, files.text
        self._text_paths = [folder / part for part in side.names]
        config = folder / "config.json"
        settings = read_json(config) if config.is_file() else {}
        self.tau = published_tau(settings)
        self._texts = OnnxTexts(self._make_text_tower(), folder / side.settings, settings)
        self._check_dims()

    @cached_property
    def text_dim(self) -> int:  # type: ignore[override]
        """Dimension of the text vectors."""
        return self._texts.tower.dim or int(self._texts.encode(["a"]).shape[1])

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, text_dim) unit rows of n texts."""
        check_texts(texts)
        if len(texts) == 0:
            return np.empty((0, self.text_dim), dtype=np.float32)
        return self._texts.encode(texts)

    def _identity(self) -> tuple[object, ...]:
        paths = sorted({*self._text_paths, *self._texts.tower.graph.files})
        return *super()._identity(), hash_files(paths), TEXT_VERSION

    def _make_text_tower(self) -> OnnxTower:
        path, image = self._text_paths[0], self._image_tower
        session = image.session if path == image.graph.path else LazySession(path)
        fit = self._preprocessing
        size = fit.shape if isinstance(fit, ImagePreprocessing) else None
        return OnnxTower(session, "tokens", OUTPUTS, size)

    def _check_dims(self) -> None:
        """Raise if the graphs state vectors of different lengths."""
        image, text = self._image_tower, self._texts.tower
        if image.dim and text.dim and image.dim != text.dim:
            raise ModelError(
                f"{printable_path(image.graph.path)} makes vectors of {image.dim} numbers, but "
                f"{printable_path(text.graph.path)} of {text.dim}: they are not of one model, or "
                "were exported without their projection. Download or export the model again."
            )
