"""The CLIP family: OpenCLIP, SigLIP, SigLIP 2 and other dual encoders of transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.checks import check_positive
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError
from nouncut.models.checkpoints import find_checkpoint, hash_checkpoint, load_model, load_tokenizer
from nouncut.models.encoder import Encoder
from nouncut.models.preprocess import PREPROCESSING_VERSION, PatchPreprocessing, read_preprocessing

if TYPE_CHECKING:
    from torch import Tensor

# Increase it when the vector of a text changes, so that stored features are not used again.
TEXT_VERSION = 1
# First batch sizes to try; larger batches on the CPU would not fit its cache.
_IMAGES_AT_ONCE = {"cpu": 16, "mps": 64, "cuda": 256}
_TOKENS_AT_ONCE = {"cpu": 1024, "mps": 16384, "cuda": 131072}


class ClipEncoder(Encoder):
    """A dual encoder of transformers: CLIP, OpenCLIP, SigLIP, SigLIP 2 and similar models."""

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "auto",
        precision: str = "auto",
        batch_size: int | None = None,
        revision: str | None = None,
    ) -> None:
        # torch takes seconds to import, so only a model that is loaded imports it.
        from nouncut.models.devices import BatchSize, choose_device, choose_precision
        from nouncut.models.text_towers import make_text_tower

        if batch_size is not None:
            check_positive({"batch_size": batch_size}, Integral)
        self.device = choose_device(device)
        self.precision = choose_precision(precision, self.device)
        folder = find_checkpoint(model, revision)
        self._preprocessing = read_preprocessing(folder)
        self._model = load_model(folder).to(self.device)
        self._text_tower = make_text_tower(self._model, load_tokenizer(folder))
        kind = self.device.type
        self._image_batch = BatchSize(batch_size or _IMAGES_AT_ONCE.get(kind, 64))
        self._text_batch = BatchSize(_TOKENS_AT_ONCE.get(kind, 16384))

        self.name = str(model)
        self.fingerprint = _fingerprint(folder, self.precision)
        self.image_dim, self.text_dim = _dimensions(self._model.config)
        # The paper's value; cosines of SigLIP models have another range.
        self.tau = 0.04 if self._model.config.model_type == "clip" else None

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """Resize, crop and normalise as the model's own processor does."""
        return self._preprocessing(image)

    def encode_prepared(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, image_dim) unit rows of n prepared images."""
        from nouncut.models.devices import run_in_batches

        def encode(start: int, stop: int) -> NDArray[np.float32]:
            return self._run(lambda: self._image_features(batch[start:stop]))

        parts = run_in_batches(encode, len(batch), self._image_batch)
        return np.concatenate([np.empty((0, self.image_dim), dtype=np.float32), *parts])

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, text_dim) unit rows of n texts."""
        if isinstance(texts, str):
            raise ParameterError("`texts` must be a sequence of str; got one str: pass [text].")
        if len(texts) == 0:
            return np.empty((0, self.text_dim), dtype=np.float32)
        return self._run(lambda: self._text_tower.encode(texts, self._text_batch))

    def _run(self, function: Callable[[], Tensor]) -> NDArray[np.float32]:
        """Return unit rows; compute them again in float32 if half precision overflows."""
        import torch

        from nouncut.models.devices import mixed_precision

        with torch.inference_mode():
            with mixed_precision(self.device, self.precision):
                features = function()
            if self.precision != "float32" and not features.isfinite().all():
                features = function()
            return unit_rows(features.cpu().numpy())

    def _image_features(self, batch: NDArray[np.float32]) -> Tensor:
        import torch

        from nouncut.models.text_towers import pooled_output

        pixels = torch.tensor(batch, device=self.device)
        inputs = {"pixel_values": pixels}
        if isinstance(self._preprocessing, PatchPreprocessing):
            inputs = _unpack_patches(pixels)
        return pooled_output(self._model.get_image_features(**inputs))


def _unpack_patches(packed: Tensor) -> dict[str, Tensor]:
    """Return the inputs of a "NaFlex" model: patches, their mask, and the shape of their grid."""
    import torch

    patches = packed[:, :, :-1].permute(0, 2, 3, 1).flatten(2)
    shapes = packed[:, 0, -1, :2].long()
    numbers = torch.arange(patches.shape[1], device=packed.device)
    return {
        "pixel_values": patches,
        "pixel_attention_mask": (numbers < shapes.prod(dim=1, keepdim=True)).int(),
        "spatial_shapes": shapes,
    }


def _dimensions(config: Any) -> tuple[int, int]:
    """Return the dimensions of image and text vectors."""
    joint = getattr(config, "projection_dim", None)
    if joint is not None:
        return int(joint), int(joint)
    text = getattr(config.text_config, "projection_size", config.text_config.hidden_size)
    return int(config.vision_config.hidden_size), int(text)


def _fingerprint(folder: Path, precision: str) -> str:
    parts = (hash_checkpoint(folder), precision, PREPROCESSING_VERSION, TEXT_VERSION)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
