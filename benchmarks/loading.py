"""Milliseconds of CPU time for loading images, without a model's network.

Run it with ``python benchmarks/loading.py [FOLDER]``; without a folder it makes JPEG files as large
as those of phones. Images are loaded at their full size, and as they are for a model: JPEG files
at the smallest of the decoder's scales that is at least twice the model's input. The cosines
compare the features of the embedded model with those at full size. The second table is about files
that are no images.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from _setting import print_result, setting
from nouncut.errors import ImageError
from nouncut.images.find import scan_images
from nouncut.images.hashing import content_hash, image_hash
from nouncut.images.open import DECODE_MARGIN, open_image
from nouncut.models.choose import load_encoder
from nouncut.models.efficientnet import SHORT_SIDE

PHOTO_SIZE = (4032, 3024)
PASSES = 3


def make_photographs(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        pixels = np.asarray(coarse.resize(PHOTO_SIZE, Image.Resampling.BICUBIC)).astype(np.int16)
        grain = rng.integers(-8, 9, (*pixels.shape[:2], 1), dtype=np.int16)
        photograph = Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8))
        photograph.save(folder / f"{number:05}.jpg", quality=90)


def milliseconds(function: Callable[[Any], Any], items: Iterable[Any]) -> float:
    """Return the CPU time per item, the least of several passes."""
    items = list(items)
    passes = []
    for _ in range(PASSES):
        start = time.process_time()
        for item in items:
            function(item)
        passes.append(time.process_time() - start)
    return 1000 * min(passes) / len(items)


def moved_by_one_pixel(path: Path) -> Image.Image:
    image = open_image(path)
    return image.crop((2, 2, *image.size))


def loading(files: list[Path]) -> list[dict[str, Any]]:
    encoder = load_encoder("mini").encoder
    ways: dict[str, Callable[[Path], Image.Image]] = {
        "full size": open_image,
        f"at least {DECODE_MARGIN} x the input": partial(
            open_image, min_side=DECODE_MARGIN * SHORT_SIDE
        ),
        "at least the input": partial(open_image, min_side=SHORT_SIDE),
        "full size, moved by one pixel": moved_by_one_pixel,
    }
    rows, features = [], {}
    for name, decode in ways.items():

        def load(path: Path, decode: Callable[[Path], Image.Image] = decode) -> NDArray[Any]:
            return encoder.prepare(decode(path))

        features[name] = encoder.encode_prepared(np.stack([load(path) for path in files]))
        cosines = _cosines(features[name], features["full size"])
        rows.append(
            {
                "decoded": name,
                "decode (ms)": milliseconds(decode, files),
                "decode and prepare (ms)": milliseconds(load, files),
                "hash (ms)": milliseconds(content_hash, files),
                "mean cosine": float(cosines.mean()),
                "least cosine": float(cosines.min()),
            }
        )
    return rows


def refusing(count: int) -> list[dict[str, Any]]:
    """Time the search and the reading of files of one byte each."""
    with tempfile.TemporaryDirectory() as root:
        for number in range(count):
            Path(root, f"{number:06}.jpg").write_bytes(bytes([number % 256]))
        start = time.process_time()
        files = scan_images(root).files
        searched = time.process_time() - start
        reasons = {_refusal(path) for path in files}
        seconds = time.process_time() - start
    return [{"files": count, "search (s)": searched, "all (s)": seconds, "reasons": len(reasons)}]


def _refusal(path: Path) -> str:
    try:
        image_hash(path)
    except ImageError as error:
        return error.reason
    return ""


def _cosines(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
    return np.asarray((rows * others).sum(axis=1) / norms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of images")
    parser.add_argument("--count", type=int, default=16, help="images (default: 16)")
    parser.add_argument("--broken", type=int, default=20_000, help="broken files (default: 20000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        if arguments.folder is None:
            make_photographs(folder, arguments.count)
        files = list(scan_images(folder).files[: arguments.count])
        result = setting("pillow") | {
            f"{len(files)} images": loading(files),
            "Files of one byte": refusing(arguments.broken),
        }
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
