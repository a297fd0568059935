import time

import numpy as np
import pytest
from image_attacks import (
    attack_with_bombs,
    attack_with_mutants,
    mutants,
    valid_files,
)
from image_bombs import BOMBS, gif, jpeg_with, png, png_chunk, qoi, saved, tiff_of_zeros
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images import bounded_file
from nouncut.images.open import open_image

# One of each kind; benchmarks/faults.py tries all.
SHORT = [
    "grey-16.png",
    "rgba-16.png",
    "rgb-16.png",
    "wide.png",
    "tall.png",
    "zTXt.png",
    "frames.png",
    "exif.png",
    "2000-scans.jpg",
    "empty-scans.jpg",
    "exif.jpg",
    "grey-8.tif",
    "tile-rgb.tif",
    "strips.tif",
    "tags.tif",
    "frames.gif",
    "canvas.webp",
    "claimed.avif",
    "runs.qoi",
    "preview.dng",
]


def test_small_files_that_cost_much(tmp_path):
    tally = attack_with_bombs(tmp_path / "bombs", SHORT)
    assert (tally.tried, tally.harm) == (len(SHORT), [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.ppm", b"P6 #" + b"x" * 20_000_000 + b"\n8 8 255\n" + bytes(192)),
        ("x.png", png(64, 64, 8, 0, png_chunk(b"teSt", b"") * 500_000)),
        ("x.jpg", jpeg_with(b"\xff" * 10_000_000)),
        ("x.gif", gif(64, extensions=1_000_000)),
        ("x.qoi", qoi(2000, b"\x6a" * 62)),
    ],
)
def test_readers_in_python_are_stopped(tmp_path, monkeypatch, name, content):
    monkeypatch.setattr(bounded_file, "MAX_SECONDS", 0.1)
    start = time.thread_time()
    assert reason(tmp_path / name, content).startswith("takes more than 5 s of processor time")
    assert time.thread_time() - start < 2


def test_mutants_through_the_command(tmp_path):
    tally = attack_with_mutants(tmp_path, count=120)
    assert (tally.tried, tally.harm) == (120, [])
    assert list(mutants(40)) == list(mutants(40))


def test_valid_files_open(tmp_path):
    for number, (suffix, content) in enumerate(valid_files()):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(content)
        assert min(open_image(path).size) >= 8


def reason(path, content):
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        open_image(path, min_side=520)
    return caught.value.reason


def test_one_limit_and_one_message_for_all_formats(tmp_path):
    side = 14_200  # more than 200 million pixels
    limits = "(at most 200 million pixels and 600 MB); make the image smaller"
    for name, content in {
        "x.png": png(side, side, 8, 0),
        "x.tif": tiff_of_zeros(side, side, (8,), 1),
        "x.webp": BOMBS["wide-canvas.webp"](),
    }.items():
        found = reason(tmp_path / name, content)
        assert found.startswith("too large when opened: "), found
        assert found.endswith(limits), found


def test_large_photographs_still_open(tmp_path):
    """A JPEG file of the largest phone sensor is decoded at a smaller size."""
    flat = Image.new("L", (16_320, 12_240), 90)
    (tmp_path / "x.jpg").write_bytes(saved(flat, "JPEG"))
    opened = open_image(tmp_path / "x.jpg", min_side=520)
    assert opened.size == (2040, 1530)
    assert np.asarray(opened.resize((1, 1))).tolist() == [[[90, 90, 90]]]
