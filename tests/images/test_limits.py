import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images import limits, pixels
from nouncut.images.bounded_file import BoundedFile, LimitError
from nouncut.images.limits import room_for
from nouncut.images.open import open_image
from nouncut.images.pixels import to_rgb

SIDES = st.integers(1, 40)


@pytest.fixture
def small_is_large(monkeypatch):
    """Treat images of a few pixels as large ones."""
    monkeypatch.setattr(limits, "_LARGE_PIXELS", 1000)


@settings(max_examples=60, deadline=None)
@given(SIDES, SIDES, st.integers(1, 9), st.sampled_from(["RGB", "L", "RGBA", "CMYK", "1"]))
def test_shrinking_in_strips_is_shrinking_as_a_whole(width, height, factor, mode):
    rng = np.random.default_rng(width * height)
    values = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
    image = Image.fromarray(values).convert(mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, "_STRIP_PIXELS", 64)
        patch.setattr(pixels, "_SMALL_PIXELS", 0)
        found = to_rgb(image, factor)
    assert np.array_equal(np.asarray(found), np.asarray(to_rgb(image).reduce(factor)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 65535), min_size=1, max_size=300))
def test_sixteen_bits_by_table_are_those_of_floats(values):
    column = np.array(values, dtype=np.uint16)[:, None]
    white = next(point for point in (255, 4095, 65535) if column.max() <= point)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, "_STRIP_PIXELS", 7)
        found = np.asarray(to_rgb(Image.fromarray(column)))[:, :, 0]
    assert np.array_equal(found, np.rint(column * (255.0 / white)))


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp", "webp", "jp2"])
def test_large_images_are_made_smaller(tmp_path, small_is_large, suffix):
    path = tmp_path / f"x.{suffix}"
    Image.linear_gradient("L").resize((300, 200)).convert("RGB").save(path)
    opened = open_image(path, min_side=64)
    assert opened.size in {(100, 67), (150, 100)}
    assert open_image(path).size == (300, 200)
    expected = open_image(path).resize(opened.size, Image.Resampling.BOX)
    assert np.abs(np.asarray(opened).astype(int) - np.asarray(expected)).max() < 6


def test_jpeg_2000_images_without_smaller_resolutions(tmp_path, small_is_large):
    Image.new("RGB", (300, 200), "red").save(tmp_path / "x.jp2", num_resolutions=1)
    assert open_image(tmp_path / "x.jp2", min_side=64).size == (100, 67)


def test_photographs_of_48_million_pixels_fit():
    """The largest HEIC photographs of phones."""
    photograph = HeifClaim()
    factor = limits.shrink_factor(photograph.size, 520)
    assert limits.memory_needed(photograph, photograph.size, factor, n_file_bytes=10**7) < 6e8


class HeifClaim:
    format, mode, info, size = "HEIF", "RGB", {"bit_depth": 8}, (8064, 6048)


def test_one_large_image_at_a_time():
    at_once, most = [], []

    def hold(n_bytes):
        with room_for(n_bytes):
            at_once.append(n_bytes)
            most.append(len(at_once))
            time.sleep(0.01)
            at_once.remove(n_bytes)

    def most_of(n_bytes):
        most.clear()
        threads = [threading.Thread(target=hold, args=(n_bytes,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(most)

    assert most_of(500_000_000) == 1
    assert most_of(1000) > 1


def test_files_that_are_read_again_and_again(tmp_path):
    (tmp_path / "x").write_bytes(bytes(10**6))
    with BoundedFile((tmp_path / "x").open("rb", buffering=0), 10**6) as file:

        def read(times):
            for _ in range(times):
                file.seek(0)
                assert len(file.read()) == 10**6

        read(4)
        with pytest.raises(LimitError):
            read(40)


def test_files_too_large_to_be_read_whole(tmp_path):
    for name, begin in {"x.avif": b"\0\0\0\x1cftypavif", "x.heic": b"\0\0\0\x1cftypheic"}.items():
        with open(tmp_path / name, "wb") as file:
            file.write(begin)
            file.truncate(2**31)
        with pytest.raises(ImageError, match=r"too large when opened: a file of 2,147 MB"):
            open_image(tmp_path / name)
