"""Peak memory of encoding few and many images: it should not grow with their number.

The image tower of the CLIP model is tiny, so that mostly loading and storing images is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from _setting import print_result, setting
from nouncut import encode_images
from nouncut.models.choose import load_encoder
from nouncut.store.store import FeatureStore

TINY = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}


def make_images(folder: Path, count: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    for number in range(count):
        pixels[0, 0] = number % 256, number // 256 % 256, number // 65536
        image = Image.fromarray(pixels).resize((320, 240), Image.Resampling.NEAREST)
        image.save(folder / f"{number:06}.png", compress_level=1)


def encode(model: str, folder: str, root: str) -> None:
    """Encode a folder and print the time and the memory of this process."""
    start = time.perf_counter()
    encoder = load_encoder(model, device="cpu").encoder
    images = encode_images(folder, encoder, FeatureStore(root))
    seconds = time.perf_counter() - start
    print(json.dumps({"images": images.n_encoded, "seconds": seconds, "peak (MB)": peak_memory()}))


def peak_memory() -> float:
    """Return the peak of this process in MB; what its parent had before does not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(model: Path, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as root:
        make_images(Path(folder), count)
        command = [sys.executable, __file__, "--encode", str(model), folder, root]
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(finished.stdout)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", nargs="+", type=int, default=[2000, 20_000])
    parser.add_argument("--encode", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.encode:
        encode(*arguments.encode)
        return
    # Here and not above, so that the measured processes do without torch.
    from _random_clip import save_checkpoint, save_export

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = save_checkpoint(Path(folder, "checkpoint"), **TINY)
        model = save_export(checkpoint, Path(folder, "export"))
        rows = [measure(model, count) for count in arguments.counts]
    print_result(
        setting("onnxruntime", "pillow") | {"Encoding generated images": rows}, arguments.json
    )


if __name__ == "__main__":
    main()
