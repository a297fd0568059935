"""Images encoded by torch and transformers: DINOv2, DINOv3, ViT and other image models."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.checks import check_positive
from nouncut.models.checkpoints import fingerprint, hash_files, torch_files
from nouncut.models.config import read_json
from nouncut.models.encoder import ImageEncoder
from nouncut.models.hardware import gpu_kind
from nouncut.models.preprocess import (
    PREPROCESSING_VERSION,
    PatchPreprocessing,
    read_preprocessing,
    settings_file,
    unpack_patches,
)
from nouncut.models.torch_devices import (
    BatchSize,
    choose_device,
    choose_precision,
    run_in_batches,
    run_model,
)
from nouncut.models.torch_loading import load_image_model, require_torch

if TYPE_CHECKING:
    import torch

# First batch sizes to try; larger batches on the CPU would not fit its cache.
_IMAGES_AT_ONCE = {"cpu": 16, "mps": 64, "cuda": 256}


class TorchImageEncoder(ImageEncoder):
    """An image model of transformers.

    The vector of an image is the model's pooled output or, without one, its first token.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        device: str = "auto",
        precision: str = "auto",
        batch_size: int | None = None,
    ) -> None:
        if batch_size is not None:
            check_positive({"batch_size": batch_size}, Integral)
        self.name = name or str(folder)
        require_torch(self.name)
        self.folder = Path(folder)
        self.device_name = (gpu_kind() or "cpu") if device == "auto" else device
        self.precision = choose_precision(precision, self.device_name)
        self.config = read_json(self.folder / "config.json")
        self._preprocessing = read_preprocessing(settings_file(self.folder))
        self.input_side = self._preprocessing.short_side
        self._image_batch = BatchSize(batch_size or _IMAGES_AT_ONCE.get(self.device_kind, 64))

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """Hash of all that the vectors depend on."""
        return fingerprint(*self._identity())

    @property
    def device_kind(self) -> str:
        """The device without its number."""
        return self.device_name.split(":")[0]

    @cached_property
    def image_dim(self) -> int:  # type: ignore[override]
        """Dimension of the vectors."""
        if isinstance(size := self.config.get("hidden_size"), int):
            return size
        blank = self.prepare(Image.new("RGB", (8, 8)))
        return int(self._encode(blank[None]).shape[1])

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """Resize, crop and normalise as the model's own processor does."""
        return self._preprocessing(image)

    def encode_prepared(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, image_dim) unit rows of n prepared images."""
        if len(batch) == 0:
            return np.empty((0, self.image_dim), dtype=np.float32)
        return self._encode(batch)

    def _identity(self) -> tuple[object, ...]:
        """Return what the vectors depend on."""
        return hash_files(torch_files(self.folder)), self.precision, PREPROCESSING_VERSION

    @cached_property
    def _device(self) -> torch.device:
        return choose_device(self.device_name)

    @cached_property
    def _model(self) -> Any:
        model, self._has_pooling = load_image_model(self.folder)
        return model.to(self._device)

    def _encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        def encode(start: int, stop: int) -> NDArray[np.float32]:
            inputs = self._inputs(batch[start:stop])
            return run_model(lambda: self._features(inputs), self._device, self.precision)

        return np.concatenate(run_in_batches(encode, len(batch), self._image_batch))

    def _inputs(self, batch: NDArray[np.float32]) -> dict[str, torch.Tensor]:
        import torch

        is_patches = isinstance(self._preprocessing, PatchPreprocessing)
        arrays = unpack_patches(batch) if is_patches else {"pixel_values": batch}
        return {name: torch.tensor(array, device=self._device) for name, array in arrays.items()}

    def _features(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        output = self._model(**inputs)
        pooled: torch.Tensor | None = getattr(output, "pooler_output", None)
        if pooled is None or not self._has_pooling:
            pooled = output.last_hidden_state[:, 0]
        # Convolutional models keep two spatial axes of length one.
        return pooled.flatten(1)
