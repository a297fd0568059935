"""Model inputs from images with Pillow and NumPy, equal to those of transformers' processors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.errors import ModelError

# Increase it when the input of an image changes, so that stored features are not used again.
PREPROCESSING_VERSION = 2
# Larger resized images are never made as a whole.
_MAX_PIXELS = 2**24
SETTINGS_FILES = ("preprocessor_config.json", "processor_config.json")
_CLIP = {
    "size": {"shortest_edge": 224},
    "crop_size": 224,
    "do_center_crop": True,
    "resample": Image.Resampling.BICUBIC,
    "image_mean": (0.48145466, 0.4578275, 0.40821073),
    "image_std": (0.26862954, 0.26130258, 0.27577711),
}
_SQUARE = {
    "size": {"height": 224, "width": 224},
    "resample": Image.Resampling.BILINEAR,
    "image_mean": (0.5, 0.5, 0.5),
    "image_std": (0.5, 0.5, 0.5),
}
_IMAGENET = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}
# What the image processors of transformers use where a file says nothing.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "Bit": _CLIP,
    "CLIP": _CLIP,
    "ChineseCLIP": _CLIP,
    "ConvNext": {
        **_SQUARE,
        "size": {"shortest_edge": 384},
        "crop_pct": 224 / 256,
        "resample": Image.Resampling.BICUBIC,
    },
    "DINOv3ViT": {**_SQUARE, **_IMAGENET},
    "DeiT": {
        **_SQUARE,
        "size": {"height": 256, "width": 256},
        "crop_size": 224,
        "do_center_crop": True,
        "resample": Image.Resampling.BICUBIC,
    },
    "Siglip": {**_SQUARE, "resample": Image.Resampling.BICUBIC},
    "Siglip2": {"patch_size": 16, "max_num_patches": 256, **_SQUARE},
    "ViT": _SQUARE,
}
# Families in which one number for the size is the shortest edge; in others it is both edges.
_SHORTEST_EDGE = ("Bit", "CLIP", "ChineseCLIP", "ConvNext", "Siglip")
# From this size on, ConvNeXt does not crop.
_CONVNEXT_UNCROPPED = 384


@dataclass(frozen=True)
class ImagePreprocessing:
    """Resize, crop and normalise images to one shape."""

    size: tuple[int, int] | int | None
    crop: tuple[int, int] | None
    resample: Image.Resampling
    levels: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int] | None:
        """Height and width of the model's input, if all images have the same."""
        return self.crop or (None if isinstance(self.size, int) else self.size)

    @property
    def short_side(self) -> int | None:
        """Pixels that the short side of an image is scaled to; None if it is not scaled."""
        return max(self.size) if isinstance(self.size, tuple) else self.size

    def __call__(self, image: Image.Image) -> NDArray[np.float32]:
        """Prepare one image."""
        return normalised_pixels(self._fit(image.convert("RGB")), self.levels)

    def _fit(self, image: Image.Image) -> Image.Image:
        if isinstance(self.size, int):
            width, height = _scaled_to_shortest(image.size, self.size)
            if self.crop is not None and width * height > _MAX_PIXELS:
                return _resize_centre(image, (width, height), self.crop, self.resample)
            image = image.resize((width, height), self.resample)
        elif self.size is not None:
            image = image.resize(self.size[::-1], self.resample)
        return image if self.crop is None else image.crop(_centre(image.size, self.crop))


@dataclass(frozen=True)
class PatchPreprocessing:
    """Cut images into patches and keep their aspect ratio, for SigLIP 2 "NaFlex".

    The patches and the shape of their grid are packed into one array of fixed shape.
    """

    patch: int
    most_patches: int
    resample: Image.Resampling
    levels: NDArray[np.float32]

    @property
    def short_side(self) -> int:
        """Pixels that the short side of an image is scaled to, at most."""
        return math.ceil(self.patch * math.sqrt(self.most_patches))

    def __call__(self, image: Image.Image) -> NDArray[np.float32]:
        """Prepare one image."""
        rows, columns = patch_grid(image.height, image.width, self.patch, self.most_patches)
        size = (columns * self.patch, rows * self.patch)
        pixels = normalised_pixels(image.convert("RGB").resize(size, self.resample), self.levels)
        grid = pixels.reshape(3, rows, self.patch, columns, self.patch).swapaxes(2, 3)
        packed = np.zeros((3, self.most_patches + 1, self.patch**2), dtype=np.float32)
        packed[:, : rows * columns] = grid.reshape(3, rows * columns, -1)
        packed[:, -1, :2] = rows, columns
        return packed


def settings_file(folder: Path) -> Path:
    """Return the file with the preprocessing of a model's images."""
    for name in SETTINGS_FILES:
        if (folder / name).is_file():
            return folder / name
    raise ModelError(
        f"{str(folder)!r} has no preprocessor_config.json, which describes the preprocessing of "
        "images: save the model's image processor there with save_pretrained of transformers."
    )


def read_preprocessing(path: Path) -> ImagePreprocessing | PatchPreprocessing:
    """Read the preprocessing of a model's images from its file."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        # Newer processors store the settings for images and texts in one file.
        settings = settings.get("image_processor", settings)
        return _preprocessing(_from_open_clip(settings) if "mean" in settings else settings)
    except (AttributeError, KeyError, OSError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(
            f"nouncut does not know the preprocessing in {str(path)!r} ({error}). Choose a `model` "
            "whose size is 'shortest_edge' with a centre crop, or 'height' and 'width'."
        ) from error


def _preprocessing(settings: Mapping[str, Any]) -> ImagePreprocessing | PatchPreprocessing:
    kind = str(settings.get("image_processor_type") or settings.get("feature_extractor_type", ""))
    family = re.sub(r"(ImageProcessor|FeatureExtractor).*$", "", kind)
    settings = {**_DEFAULTS.get(family, {}), **settings}
    if family == "ConvNext":
        settings = _from_convnext(settings)
    levels = _levels(settings)
    if "max_num_patches" in settings:
        return PatchPreprocessing(
            patch=int(settings["patch_size"]),
            most_patches=int(settings["max_num_patches"]),
            resample=Image.Resampling(settings["resample"]),
            levels=levels,
        )
    size = _resize_size(settings, is_square=bool(family) and family not in _SHORTEST_EDGE)
    crop = _crop_size(settings)
    if crop is None and not isinstance(size, tuple):
        raise ValueError("its images keep different shapes")
    return ImagePreprocessing(size, crop, Image.Resampling(settings["resample"]), levels)


def _from_convnext(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the size and the cropped share of ConvNeXt as other processors do."""
    size = settings["size"]
    edge = size if isinstance(size, int) else int(size["shortest_edge"])
    if edge >= _CONVNEXT_UNCROPPED:
        return {**settings, "size": {"height": edge, "width": edge}}
    resized = {"shortest_edge": int(edge / settings["crop_pct"])}
    return {**settings, "size": resized, "crop_size": edge, "do_center_crop": True}


def _from_open_clip(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the settings of OpenCLIP as transformers does."""
    size = settings["size"]
    height, width = (size, size) if isinstance(size, int) else size
    mode = settings.get("resize_mode", "shortest")
    if mode not in ("shortest", "squash") or (mode == "shortest" and height != width):
        raise ValueError(f"resize_mode is {mode!r}")
    fitted = {"shortest_edge": height} if mode == "shortest" else {"height": height, "width": width}
    return {
        "size": fitted,
        "crop_size": {"height": height, "width": width},
        "do_center_crop": mode == "shortest",
        "resample": Image.Resampling[str(settings.get("interpolation", "bicubic")).upper()],
        "image_mean": settings["mean"],
        "image_std": settings["std"],
    }


def normalised_pixels(image: Image.Image, levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (3, height, width) pixels; `levels` holds the value of each of 256 levels."""
    pixels = np.asarray(image)
    return np.stack([levels[channel][pixels[..., channel]] for channel in range(3)])


def patch_grid(height: int, width: int, patch: int, most_patches: int) -> tuple[int, int]:
    """Return the rows and columns of the largest grid with at most `most_patches` patches."""

    def grid(scale: float) -> tuple[int, int]:
        rows, columns = (math.ceil(edge * scale / patch) for edge in (height, width))
        return max(1, rows), max(1, columns)

    # Bisection with the bounds and the precision of transformers.
    low, high, precision = 1e-6, 100.0, 1e-5
    while high - low >= precision:
        middle = (low + high) / 2
        if math.prod(grid(middle)) <= most_patches:
            low = middle
        else:
            high = middle
    return grid(low)


def unpack_patches(packed: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return the inputs of a "NaFlex" model: patches, their mask, and the shape of their grid."""
    patches = packed[:, :, :-1].transpose(0, 2, 3, 1)
    shapes = packed[:, 0, -1, :2].astype(np.int64)
    numbers = np.arange(patches.shape[1])
    return {
        "pixel_values": patches.reshape(*patches.shape[:2], -1),
        "pixel_attention_mask": (numbers < shapes.prod(axis=1, keepdims=True)).astype(np.int32),
        "spatial_shapes": shapes,
    }


def _resize_size(settings: Mapping[str, Any], is_square: bool) -> tuple[int, int] | int | None:
    if not settings.get("do_resize", True):
        return None
    size = settings["size"]
    if isinstance(size, int):
        return (size, size) if is_square else size
    if "height" in size:
        return int(size["height"]), int(size["width"])
    if size.get("longest_edge"):
        raise ValueError("size has a 'longest_edge'")
    return int(size["shortest_edge"])


def _crop_size(settings: Mapping[str, Any]) -> tuple[int, int] | None:
    if not settings.get("do_center_crop", False):
        return None
    crop = settings["crop_size"]
    return (crop, crop) if isinstance(crop, int) else (int(crop["height"]), int(crop["width"]))


def _levels(settings: Mapping[str, Any]) -> NDArray[np.float32]:
    levels = np.tile(np.arange(256, dtype=np.float64), (3, 1))
    if settings.get("do_rescale", True):
        levels *= settings.get("rescale_factor", 1 / 255)
    scaled = levels.astype(np.float32)
    if settings.get("do_normalize", True):
        mean = np.array(settings["image_mean"], dtype=np.float32)
        deviation = np.array(settings["image_std"], dtype=np.float32)
        scaled = (scaled - mean[:, None]) / deviation[:, None]
    return scaled


def _scaled_to_shortest(size: tuple[int, int], shortest: int) -> tuple[int, int]:
    width, height = size
    if width <= height:
        return shortest, int(shortest * height / width)
    return int(shortest * width / height), shortest


def _centre(size: tuple[int, int], crop: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the box of a centre crop; Pillow fills it with black beyond the image."""
    left, top = (size[0] - crop[1]) // 2, (size[1] - crop[0]) // 2
    return left, top, left + crop[1], top + crop[0]


def _resize_centre(
    image: Image.Image, size: tuple[int, int], crop: tuple[int, int], resample: Image.Resampling
) -> Image.Image:
    """Resize only the part that a centre crop keeps.

    Otherwise a strip one pixel wide would grow to hundreds of megabytes.
    """
    inside = (min(crop[0], size[1]), min(crop[1], size[0]))
    left, top, right, bottom = _centre(size, inside)
    across, down = image.width / size[0], image.height / size[1]
    box = (left * across, top * down, right * across, bottom * down)
    resized = image.resize(inside[::-1], resample, box=box)
    return resized.crop(_centre(resized.size, crop))
