"""Attacks with image files: small files that cost much to open, and mutants of valid files."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from image_bombs import (
    BOMBS,
    TESTS,
    bmp_runs,
    noise,
    png,
    qoi,
    raw_with_preview,
    saved,
    tiff_of_zeros,
)
from PIL import Image
from tally import Tally

MAX_MEGABYTES = 600
MAX_SECONDS = 5
# The time is looked at after every block that is read, and not all of the work is reading.
_GRACE_SECONDS = 1
_N_VALID = 24


@dataclass(frozen=True)
class Cost:
    """What opening one file took, and what came of it."""

    name: str
    megabytes: float
    seconds: float
    result: str


def attack_with_bombs(folder: Path, names: Iterable[str] | None = None) -> Tally:
    """Open small files that cost much; each must stay within the limits of memory and time."""
    tally = Tally("image files that cost much")
    for cost in bomb_costs(folder, names):
        tally.attempt(cost.name, lambda cost=cost: _check_cost(cost))
    return tally


def bomb_costs(
    folder: Path, names: Iterable[str] | None = None, at_once: int = 8
) -> Iterator[Cost]:
    """Write some or all bombs, some at a time; open each in a process of its own, and measure."""
    names = list(BOMBS if names is None else names)
    folder.mkdir(exist_ok=True)
    for start in range(0, len(names), at_once):
        paths = [folder / name for name in names[start : start + at_once]]
        for path in paths:
            path.write_bytes(BOMBS[path.name]())
        command = [sys.executable, str(TESTS / "faults" / "image_cost.py"), *map(str, paths)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        yield from (Cost(**json.loads(line)) for line in ended.stdout.splitlines())
        for path in paths:
            path.unlink()


def _check_cost(cost: Cost) -> None:
    assert not cost.result.startswith("died"), cost
    assert cost.megabytes <= MAX_MEGABYTES, cost
    assert cost.seconds <= MAX_SECONDS + _GRACE_SECONDS, cost


def attack_with_mutants(folder: Path, count: int = 2000, seed: int = 0) -> Tally:
    """Run the command on a folder of damaged images, each of which is used or skipped."""
    from nouncut import open_run

    command = runpy.run_path(str(TESTS / "cli" / "conftest.py"))
    save_clip = runpy.run_path(str(TESTS / "models" / "conftest.py"))["save_clip"]
    images = folder / "images"
    command["draw_pictures"](images, range(_N_VALID))
    names = [f"mutant-{number:05}{suffix}" for number, suffix, _ in mutants(count, seed)]
    for name, (_, _, content) in zip(names, mutants(count, seed), strict=True):
        (images / name).write_bytes(content)
    words = command["write_words"](folder)
    nouncut = command["Nouncut"](folder, folder / "cache")
    # Fails if there is a traceback, and after some minutes without an end.
    options = ("-k", 4, "--vocabulary", words, "--model", save_clip(folder / "model"))
    nouncut("cluster", images, "--output", "run", *options)
    run = open_run(folder / "run")
    used = {Path(path).name for path in run.images["path"].to_pylist()[: len(run.assignments)]}
    skipped = {Path(file.path).name: file.reason for file in run.skipped}
    tally = Tally("mutated images through the command")
    for name in names:
        tally.attempt(name, lambda name=name: _check_mutant(name, used, skipped))
    return tally


def _check_mutant(name: str, used: set[str], skipped: dict[str, str]) -> None:
    assert (name in used) != (name in skipped), "neither used nor skipped, or both"
    assert name in used or skipped[name].isprintable(), skipped[name]


def mutants(count: int, seed: int = 0) -> Iterator[tuple[int, str, bytes]]:
    """Yield numbers, suffixes and contents of damaged files, of all formats in turn."""
    valid = valid_files()
    rng = np.random.default_rng(seed)
    for number in range(count):
        suffix, content = valid[number % len(valid)]
        kind = number // len(valid) % 6
        other = valid[int(rng.integers(len(valid)))][1]
        yield number, suffix, mutate(content, kind, other, rng)


def mutate(content: bytes, kind: int, other: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file in one of six ways."""
    damaged = bytearray(content)
    at = int(rng.integers(len(content)))
    if kind == 0:
        return content[:at]
    if kind == 1:
        for _ in range(rng.integers(1, 20)):
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
    elif kind == 2:
        # The header decides how the rest is read.
        for _ in range(rng.integers(1, 6)):
            damaged[rng.integers(min(200, len(damaged)))] = rng.integers(256)
    elif kind == 3:
        damaged[at : at + 30] = rng.bytes(rng.integers(60))
    elif kind == 4:
        # Lengths and sizes that are as large as can be.
        at = int(rng.integers(min(200, len(damaged))))
        damaged[at : at + 4] = b"\xff" * 4
    else:
        return content[:at] + other[at:]
    return bytes(damaged)


def valid_files() -> list[tuple[str, bytes]]:
    """Return suffixes and contents of small files of all formats."""
    picture = noise(48, 40)
    frames = {"save_all": True, "append_images": [noise(48, 40, seed) for seed in (1, 2)]}
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "words"
    deep = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 200)
    compressions = ("raw", "tiff_lzw", "tiff_deflate", "jpeg", "packbits")
    return [
        (".jpg", saved(picture, "JPEG", exif=exif)),
        (".jpg", saved(picture, "JPEG", progressive=True)),
        (".png", saved(picture, "PNG", exif=exif)),
        (".png", saved(deep, "PNG")),
        (".png", png(40, 30, 16, 6)),
        (".png", saved(picture, "PNG", **frames)),
        (".gif", saved(picture, "GIF", **frames)),
        (".webp", saved(picture, "WEBP", exif=exif)),
        (".webp", saved(picture, "WEBP", **frames)),
        (".bmp", saved(picture, "BMP")),
        (".bmp", bmp_runs(30)),
        (".avif", saved(picture, "AVIF")),
        (".heic", saved(picture, "HEIF")),
        (".jp2", saved(picture, "JPEG2000")),
        (".ppm", saved(picture, "PPM")),
        (".pgm", b"P2 8 8 255\n" + b"7 " * 64),
        (".qoi", qoi(30)),
        (".tif", saved(deep, "TIFF")),
        (".tif", tiff_of_zeros(40, 30, (16,) * 4, 2)),
        (".dng", raw_with_preview(saved(noise(520, 520), "JPEG"))),
        (".tif", saved(picture.convert("1"), "TIFF", compression="group4")),
        *((".tif", saved(picture, "TIFF", compression=one)) for one in compressions),
    ]
