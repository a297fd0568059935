"""Dual encoders run by torch and transformers: CLIP, OpenCLIP, SigLIP and similar models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.models.config import Dimensions, clean_text, embedding_dims, published_tau
from nouncut.models.encoder import Encoder, check_texts
from nouncut.models.torch_devices import BatchSize, run_model
from nouncut.models.torch_images import TorchImageEncoder
from nouncut.models.torch_loading import load_dual_encoder, load_tokenizer

if TYPE_CHECKING:
    import torch

    from nouncut.models.torch_text import CausalTextTower, PlainTextTower

# Increase it when the vector of a text changes, so that stored features are not used again.
TEXT_VERSION = 1
_TOKENS_AT_ONCE = {"cpu": 1024, "mps": 16384, "cuda": 131072}


class TorchClipEncoder(TorchImageEncoder, Encoder):
    """A dual encoder of transformers: CLIP, OpenCLIP, SigLIP, SigLIP 2 and similar models."""

    def __init__(self, folder: str | Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self._text_batch = BatchSize(_TOKENS_AT_ONCE.get(self.device_kind, 16384))
        self.tau = published_tau(self.config)

    @cached_property
    def image_dim(self) -> int:  # type: ignore[override]
        """Dimension of the image vectors."""
        return self._dims.image

    @cached_property
    def text_dim(self) -> int:  # type: ignore[override]
        """Dimension of the text vectors."""
        return self._dims.text

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, text_dim) unit rows of n texts."""
        check_texts(texts)
        if len(texts) == 0:
            return np.empty((0, self.text_dim), dtype=np.float32)
        cleaned = [clean_text(text, self.config) for text in texts]
        tower = self._text_tower
        return run_model(
            lambda: tower.encode(cleaned, self._text_batch), self._device, self.precision
        )

    def _identity(self) -> tuple[object, ...]:
        is_plain = clean_text("A", self.config) == "A"
        return *super()._identity(), TEXT_VERSION, *(() if is_plain else ("lower case",))

    @cached_property
    def _dims(self) -> Dimensions:
        known = embedding_dims(self.config)
        if known is not None:
            return known
        config = self._model.config
        joint = getattr(config, "projection_dim", None)
        if joint is not None:
            return Dimensions(int(joint), int(joint))
        return Dimensions(
            int(config.vision_config.hidden_size), int(config.text_config.hidden_size)
        )

    @cached_property
    def _model(self) -> Any:
        return load_dual_encoder(self.folder).to(self._device)

    @cached_property
    def _text_tower(self) -> CausalTextTower | PlainTextTower:
        from nouncut.models.torch_text import make_text_tower

        return make_text_tower(self._model, load_tokenizer(self.folder))

    def _features(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        from nouncut.models.torch_text import pooled_output

        return pooled_output(self._model.get_image_features(**inputs))
