"""Images encoded by ONNX Runtime: DINOv2, ViT and other image models."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.rows import unit_rows
from nouncut.errors import ModelError, printable_path
from nouncut.models.checkpoints import fingerprint, hash_files
from nouncut.models.encoder import ImageEncoder
from nouncut.models.onnx_layouts import OnnxFiles
from nouncut.models.onnx_towers import Feeds, LazySession, OnnxTower
from nouncut.models.preprocess import (
    PREPROCESSING_VERSION,
    PatchPreprocessing,
    read_preprocessing,
    unpack_patches,
)

# Larger batches do not fit the cache of a core.
_IMAGES_AT_ONCE = 4
_OUTPUTS = ("image_embeds", "pooler_output", "last_hidden_state")


class OnnxImageEncoder(ImageEncoder):
    """The image side of an ONNX export."""

    def __init__(self, files: OnnxFiles, *, name: str | None = None) -> None:
        self.files = files
        self.name = name or str(files.image_folder)
        path = files.image_folder / files.image.settings
        self._preprocessing = read_preprocessing(path)
        self.input_side = self._preprocessing.short_side
        session = LazySession(files.image_folder / files.image.graph)
        self._image_tower = OnnxTower(session, "pixels", _OUTPUTS)
        self._check_size()

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """Hash of all that the vectors depend on."""
        return fingerprint("onnx", *self._identity())

    @cached_property
    def image_dim(self) -> int:  # type: ignore[override]
        """Dimension of the vectors."""
        if self._image_tower.dim:
            return self._image_tower.dim
        return int(self._encode(self.prepare(Image.new("RGB", (8, 8)))[None]).shape[1])

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
        folder, side = self.files.image_folder, self.files.image
        paths = (*self._image_tower.graph.files, folder / side.settings)
        return hash_files(paths), PREPROCESSING_VERSION

    def _encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        size = self._image_tower.batch_size or _IMAGES_AT_ONCE
        parts = [self._feeds(batch[start : start + size]) for start in range(0, len(batch), size)]
        return unit_rows(np.concatenate(self._image_tower.run_batches(parts)))

    def _feeds(self, batch: NDArray[np.float32]) -> Feeds:
        if not isinstance(self._preprocessing, PatchPreprocessing):
            return {"pixels": batch}
        arrays: dict[str, NDArray[Any]] = unpack_patches(batch)
        return {"pixels": arrays.pop("pixel_values"), **arrays}

    def _check_size(self) -> None:
        """Raise if the graph and the preprocessing disagree on the size of images."""
        if isinstance(self._preprocessing, PatchPreprocessing):
            return
        wanted, made = self._image_tower.input("pixels").shape[2:], self._preprocessing.shape
        if made and any(a and a != b for a, b in zip(wanted, made, strict=True)):
            folder, side = self.files.image_folder, self.files.image
            raise ModelError(
                f"{printable_path(folder / side.graph)} takes images of {wanted} pixels, but "
                f"{printable_path(folder / side.settings)} makes {made}. Download or export the "
                "model again."
            )
