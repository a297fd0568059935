"""What a new user waits for, beside version 0.1.0: install, first run, second run, another K.

Run ``python benchmarks/first_minute.py FOLDER`` in a checkout with its history. Both versions are
installed into fresh virtual environments with the command of their README, and sort the same 600
photographs of FOLDER (all of its sub-folders, drawn at random) with their embedded model and an
empty cache. Nothing is downloaded from a hub. The machine should be idle; it takes ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _setting import print_result, setting

CHECKOUT = Path(__file__).parents[1]
# The last commit of version 0.1.0, and what its README installs.
BASELINE, BASELINE_EXTRAS = "c24b8e1", "[images]"
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
# Images per second with the model loaded; version 0.1.0 has its encoders elsewhere.
SPEED = """
import sys, time
from importlib import import_module
from nouncut import encode_images
try:
    choose = import_module("nouncut.models.choose")
except ImportError:
    choose = import_module("nouncut.encoders.choice")
is_new = "models" in choose.__name__
store = import_module("nouncut.store.store" if is_new else "nouncut.features.store")
encoder = choose.load_encoder("mini").encoder
folder, warm_up, cache = sys.argv[1:]
encode_images(warm_up, encoder, store.FeatureStore(cache))
start = time.perf_counter()
found = encode_images(folder, encoder, store.FeatureStore(cache))
print(found.n_encoded / (time.perf_counter() - start))
"""


@dataclass(frozen=True)
class Version:
    """A source tree and the extras that its README's first command installs."""

    title: str
    source: Path
    extras: str


class Environment:
    """A fresh virtual environment with one version."""

    def __init__(self, version: Version, folder: Path) -> None:
        self.folder, self.cache = folder / "environment", folder / "cache"
        run([sys.executable, "-m", "venv", str(self.folder)])
        package = f"{version.source}{version.extras}"
        install = [self.program("pip"), "install", "--quiet", "--no-cache-dir", package]
        self.seconds_to_install = run(install)

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def nouncut(self, *arguments: str) -> float:
        return run([self.program("nouncut"), *arguments], NOUNCUT_CACHE=str(self.cache))

    def megabytes(self) -> float:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sum(path.lstat().st_size for path in files if not path.is_symlink()) / 1e6


def run(command: Sequence[str], **environment: str) -> float:
    """Run a command without a hub; return its wall time."""
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return time.perf_counter() - start


def sample_photographs(source: Path, target: Path, count: int) -> None:
    files = sorted(path for path in source.rglob("*") if path.suffix.lower() in SUFFIXES)
    target.mkdir(parents=True)
    for number, path in enumerate(random.Random(0).sample(files, min(count, len(files)))):
        shutil.copyfile(path, target / f"{number:04}{path.suffix.lower()}")


def images_per_second(environment: Environment, photographs: Path, folder: Path) -> float:
    warm_up = folder / "warm-up"
    warm_up.mkdir()
    for path in sorted(photographs.iterdir())[:8]:
        shutil.copy(path, warm_up)
    command = [environment.program("python"), "-c", SPEED]
    done = subprocess.run(
        [*command, str(photographs), str(warm_up), str(folder / "speed-cache")],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return float(done.stdout)


def measure(version: Version, photographs: Path, folder: Path) -> dict[str, float]:
    folder.mkdir()
    environment = Environment(version, folder)
    output = ["-o", str(folder / "run"), "--quiet"]
    images = str(photographs)
    found = {
        "environment (MB)": environment.megabytes(),
        "install (s)": environment.seconds_to_install,
        "first run (s)": environment.nouncut("cluster", images, *output),
    }
    manifest = json.loads((folder / "run/manifest.json").read_text())
    found["nouns (s)"] = manifest["seconds"]["encoding nouns"]
    again = [environment.nouncut("cluster", images, *output) for _ in range(3)]
    found["second run, nothing new (s)"] = min(again)
    others = [
        environment.nouncut("cluster", images, "-k", str(k), "-o", f"{folder}/run-{k}", "--quiet")
        for k in (11, 12, 13)
    ]
    found["another -k, nothing new (s)"] = min(others)
    found["images per second"] = images_per_second(environment, photographs, folder)
    return found


def checkout(revision: str, target: Path) -> Path:
    run(["git", "clone", "--quiet", "--no-checkout", str(CHECKOUT), str(target)])
    run(["git", "-C", str(target), "checkout", "--quiet", revision])
    return target


def table(
    before: Mapping[str, float], now: Mapping[str, float], version: Version
) -> list[dict[str, Any]]:
    return [
        {
            "": name,
            version.title: round(before[name], 2),
            "now": round(now[name], 2),
            "ratio": round(now[name] / before[name], 3),
        }
        for name in before
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with at least 600 photographs")
    parser.add_argument("--images", type=int, default=600, help="how many (default: 600)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photographs = folder / "photographs"
        sample_photographs(arguments.folder, photographs, arguments.images)
        old = Version("0.1.0", checkout(BASELINE, folder / "old"), BASELINE_EXTRAS)
        new = Version("now", checkout("HEAD", folder / "new"), "")
        before = measure(old, photographs, folder / "measured-old")
        now = measure(new, photographs, folder / "measured-new")
    title = f"{arguments.images} photographs"
    print_result(setting("onnxruntime") | {title: table(before, now, old)}, arguments.json)


if __name__ == "__main__":
    main()
