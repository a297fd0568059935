"""A data set: images that choose the nouns, images to cluster, and their classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.errors import InputError, printable_path
from nouncut.images.hashing import content_hash
from nouncut.images.open import open_image
from nouncut.words.prompts import PROMPTS

_DIGEST_BYTES = 20


class ImageSource(Protocol):
    """A sequence of images whose features can be computed and stored."""

    def __len__(self) -> int: ...

    def open(self, index: int) -> Image.Image:
        """Return an image, upright and RGB."""

    def key(self, index: int) -> str:
        """Return the hash of an image's content, under which its features are stored."""

    def path(self, index: int) -> Path:
        """Return where an image is, to be shown in messages."""

    def stamp(self) -> str:
        """Return a hash that changes with the files, without reading them."""


@dataclass(frozen=True)
class Dataset:
    """Images that choose the nouns (`train`), and labelled images to cluster (`test`)."""

    name: str
    train: ImageSource
    test: ImageSource
    labels: NDArray[np.intp]
    class_names: tuple[str, ...]
    # For zero-shot classification; without names of their own, prompts have those of the classes.
    prompt_names: tuple[str, ...] = ()
    templates: tuple[str, ...] = PROMPTS


@dataclass(frozen=True)
class CentreCrop:
    """Scale an image to a shortest side and keep its centre, as is usual for ImageNet."""

    shortest: int
    side: int

    def __call__(self, image: Image.Image) -> Image.Image:
        """Return the centre of an image."""
        least = min(image.size)
        width, height = (int(self.shortest * edge / least) for edge in image.size)
        scaled = image.resize((width, height), Image.Resampling.BICUBIC)
        left, top = round((width - self.side) / 2), round((height - self.side) / 2)
        return scaled.crop((left, top, left + self.side, top + self.side))


@dataclass(frozen=True)
class FileImages:
    """Images in one file each."""

    paths: tuple[Path, ...]
    crop: CentreCrop | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, index: int) -> Image.Image:
        """Return an image, upright, RGB and cropped."""
        image = open_image(self.paths[index])
        return image if self.crop is None else self.crop(image)

    def key(self, index: int) -> str:
        """Return the hash of the file, and the crop."""
        crop = self.crop
        suffix = "" if crop is None else f" {crop.shortest}/{crop.side}"
        return content_hash(self.paths[index]) + suffix

    def path(self, index: int) -> Path:
        """Return the file."""
        return self.paths[index]

    def stamp(self) -> str:
        """Return a hash of the files' names, sizes and times."""
        return _stamp(self.paths, repr(self.crop))


@dataclass(frozen=True)
class PixelImages:
    """Small images of one shape (3, height, width), one after the other in files of raw bytes.

    Every image follows `header` other bytes. With `by_columns` pixels run down the columns.
    """

    files: tuple[Path, ...]
    shape: tuple[int, int, int]
    header: int = 0
    by_columns: bool = False

    def __len__(self) -> int:
        return sum(len(records) for records in self._records)

    def open(self, index: int) -> Image.Image:
        """Return an image."""
        pixels = self._pixels(index).reshape(self.shape)
        order = (2, 1, 0) if self.by_columns else (1, 2, 0)
        return Image.fromarray(np.ascontiguousarray(pixels.transpose(order)))

    def key(self, index: int) -> str:
        """Return the hash of the pixels."""
        digest = hashlib.blake2b(repr(self.shape).encode(), digest_size=_DIGEST_BYTES)
        digest.update(bytes([self.by_columns]) + self._pixels(index).tobytes())
        return digest.hexdigest()

    def path(self, index: int) -> Path:
        """Return the file of an image, and the image's number in it."""
        file, row = self._locate(index)
        return self.files[file] / f"image {row}"

    def stamp(self) -> str:
        """Return a hash of the files' names, sizes and times."""
        return _stamp(self.files, repr((self.shape, self.header, self.by_columns)))

    def headers(self) -> NDArray[np.uint8]:
        """Return the bytes before the pixels, (n_images, header)."""
        return np.concatenate([records[:, : self.header] for records in self._records])

    @cached_property
    def _records(self) -> list[NDArray[np.uint8]]:
        return [self._map(path) for path in self.files]

    def _map(self, path: Path) -> NDArray[Any]:
        size = self.header + int(np.prod(self.shape))
        n_bytes = path.stat().st_size
        if n_bytes == 0 or n_bytes % size:
            raise InputError(
                f"{printable_path(path)} has {n_bytes:,} bytes, which is no multiple of the "
                f"{size:,} bytes of an image: the file is incomplete or of another kind. Download "
                "it again."
            )
        return np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, size)

    def _locate(self, index: int) -> tuple[int, int]:
        for file, records in enumerate(self._records):
            if index < len(records):
                return file, index
            index -= len(records)
        raise IndexError(index)

    def _pixels(self, index: int) -> NDArray[np.uint8]:
        file, row = self._locate(index)
        return self._records[file][row, self.header :]


def _stamp(paths: Sequence[Path], options: str) -> str:
    digest = hashlib.blake2b(options.encode(), digest_size=_DIGEST_BYTES)
    for path in paths:
        try:
            status = os.stat(path)
        except FileNotFoundError as error:
            raise InputError(
                f"{printable_path(path)} belongs to the data set, but does not exist. Unpack the "
                "data set again."
            ) from error
        digest.update(os.fsencode(path.absolute()))
        digest.update(f"\0{status.st_size} {status.st_mtime_ns}\0".encode())
    return digest.hexdigest()
