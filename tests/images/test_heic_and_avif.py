import io
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pillow_heif
import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.open import open_image


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, (150, 200, 3), dtype=np.uint8))


def pixels(image):
    return np.asarray(image).astype(int)


def with_claimed_size(content, side):
    """Change the size in the header of a HEIC or AVIF file."""
    at = content.index(b"ispe") + 8
    return content[:at] + struct.pack(">II", side, side) + content[at + 8 :]


def encoded(image, name, **options):
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def test_heic_files_are_turned_once(tmp_path, corners):
    """Phones store both a rotation, which the decoder applies, and an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(corners(6)).save(
        tmp_path / "x.heic", exif=exif.tobytes(), quality=-1, chroma=444
    )
    content = (tmp_path / "x.heic").read_bytes()
    assert b"irot" in content
    stored = Image.Exif()
    stored.load(pillow_heif.open_heif(tmp_path / "x.heic").info["exif"])
    assert stored[0x0112] == 6
    assert np.abs(pixels(open_image(tmp_path / "x.heic")) - corners()).mean() < 3


@pytest.mark.parametrize("suffix", ["heic", "avif"])
def test_transparency_of_newer_formats(tmp_path, suffix):
    Image.new("RGBA", (64, 64), (0, 0, 255, 0)).save(tmp_path / f"x.{suffix}", quality=95)
    assert min(open_image(tmp_path / f"x.{suffix}").getpixel((32, 32))) > 250


@pytest.mark.parametrize("name", ["HEIF", "AVIF"])
def test_claims_of_newer_formats_are_checked_before_decoding(tmp_path, name, noise):
    content = encoded(noise, name)
    (tmp_path / "x").write_bytes(with_claimed_size(content, 15_000))
    start = time.process_time()
    with pytest.raises(ImageError, match="too large when opened: 15000 x 15000 pixels"):
        open_image(tmp_path / "x")
    assert time.process_time() - start < 2


@pytest.mark.parametrize("name", ["HEIF", "AVIF"])
def test_damaged_files_of_newer_formats(tmp_path, name, capfd, noise):
    content = encoded(noise, name)
    brand = content[:16]
    for damaged in (content[:-500], content[:100], brand, brand + bytes(3000)):
        (tmp_path / "x").write_bytes(damaged)
        with pytest.raises(ImageError) as caught:
            open_image(tmp_path / "x")
        assert caught.value.reason.startswith("the image is broken (")
    assert capfd.readouterr().err == ""


def test_a_heic_file_with_the_brand_that_avif_shares(tmp_path):
    content = encoded(Image.new("RGB", (64, 64), "red"), "HEIF")
    (tmp_path / "x").write_bytes(content.replace(b"ftypheic", b"ftypmif1", 1))
    assert np.abs(pixels(open_image(tmp_path / "x")) - (255, 0, 0)).max() <= 4


def test_threads_decode_the_same_pixels(tmp_path, noise):
    names = ["HEIF", "AVIF", "TIFF", "JPEG"]
    for name in names:
        (tmp_path / name).write_bytes(encoded(noise, name))
    paths = [tmp_path / name for name in names] * 6
    alone = [pixels(open_image(path)) for path in paths]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(open_image, paths), alone, strict=True):
            assert np.array_equal(pixels(found), expected)


def test_a_reader_that_is_missing_is_named(tmp_path, monkeypatch, noise):
    (tmp_path / "x.heic").write_bytes(encoded(noise, "HEIF"))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ImageError, match=r"needs a package that is not installed .*pillow_heif"):
        open_image(tmp_path / "x.heic")
