import io
import os
import pickle
import struct
import time
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.find import scan_images
from nouncut.images.hashing import content_hash, image_bytes_hash
from nouncut.images.open import open_image, open_image_bytes


def noise(size=(96, 64), seed=0):
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def pixels(image):
    return np.asarray(image).astype(int)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tiff", "avif", "heic"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright(tmp_path, corners, orientation, suffix):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{suffix}"
    options = {
        "jpg": {"quality": 95, "subsampling": 0},
        "webp": {"lossless": True},
        "avif": {"quality": 95, "subsampling": "4:4:4"},
        "heic": {"quality": -1, "chroma": 444},
    }
    image = Image.fromarray(corners(orientation))
    image.save(path, exif=exif.tobytes(), **options.get(suffix, {}))
    image = open_image(path)
    assert image.size == (48, 32)
    assert np.abs(pixels(image) - corners()).mean() < 3
    assert image.info == {}
    assert 0x0112 not in image.getexif()


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_unknown_orientations_are_ignored(tmp_path, corners, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(corners()).save(tmp_path / "x.png", exif=exif)
    assert np.array_equal(pixels(open_image(tmp_path / "x.png")), corners())


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB"])
def test_transparency_becomes_white(tmp_path, mode):
    path = tmp_path / "clear.png"
    if mode == "P":
        image = Image.new("P", (2, 1))
        image.putpalette([255, 0, 0, 0, 0, 255])
        image.putdata([0, 1])
        image.save(path, transparency=1)
    elif mode == "RGB":
        image = Image.new("RGB", (2, 1), "red")
        image.putpixel((1, 0), (0, 0, 255))
        image.save(path, transparency=(0, 0, 255))
    else:
        image = Image.new("RGBA", (2, 1), (255, 0, 0, 255)).convert(mode)
        image.putpixel((1, 0), (0,) * len(mode))
        image.save(path)
    opened = open_image(path)
    assert opened.getpixel((1, 0)) == (255, 255, 255)
    assert opened.getpixel((0, 0)) in {(255, 0, 0), (76, 76, 76)}


def test_half_transparency_is_mixed_with_white(tmp_path):
    Image.new("RGBA", (2, 2), (0, 0, 0, 128)).save(tmp_path / "x.webp", lossless=True)
    assert open_image(tmp_path / "x.webp").getpixel((0, 0)) == (127, 127, 127)


def test_palettes_with_degrees_of_transparency(tmp_path):
    image = Image.new("P", (3, 1))
    image.putpalette([0, 0, 0] * 3)
    image.putdata([0, 1, 2])
    image.save(tmp_path / "x.png", transparency=bytes([255, 128, 0]))
    assert pixels(open_image(tmp_path / "x.png"))[0, :, 0].tolist() == [0, 127, 255]


def test_transparent_parts_of_gif_files(tmp_path):
    image = Image.new("P", (2, 1), 1)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((0, 0), 0)
    image.save(tmp_path / "x.gif", transparency=1)
    assert pixels(open_image(tmp_path / "x.gif")).tolist() == [[[255, 0, 0], [255, 255, 255]]]


@pytest.mark.parametrize("suffix", ["jpg", "tiff"])
def test_inks_become_colours(tmp_path, suffix):
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / f"x.{suffix}")
    assert np.abs(pixels(open_image(tmp_path / f"x.{suffix}")) - (255, 0, 0)).max() <= 3


def test_sixteen_bits_per_colour(tmp_path, write_tiff):
    values = np.array([[(0, 128, 255), (255, 64, 32)]], dtype="<u2") * 257
    long, short = 4, 3
    tags = {256: (long, (2,)), 257: (long, (1,)), 258: (short, (16, 16, 16)), 259: (short, (1,))}
    tags |= {262: (short, (2,)), 277: (short, (3,)), 278: (long, (1,))}
    path = write_tiff(tmp_path / "x.tif", tags, values.tobytes())
    assert np.array_equal(pixels(open_image(path)), values // 257)


@pytest.mark.parametrize("suffix", ["png", "tiff"])
@pytest.mark.parametrize(("top", "white"), [(255, 255), (4095, 4095), (60000, 65535)])
def test_sixteen_bits_are_scaled(tmp_path, suffix, top, white):
    values = np.linspace(0, top, 256).reshape(16, 16).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / f"deep.{suffix}")
    opened = pixels(open_image(tmp_path / f"deep.{suffix}"))
    expected = np.rint(values / white * 255)
    assert np.array_equal(opened, np.repeat(expected[..., None], 3, axis=2))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0.0, 0.5, 1.0]], dtype=np.float32), [0, 128, 255]),
        (np.array([[0.0, 100.0, 255.0]], dtype=np.float32), [0, 100, 255]),
        (np.array([[-5.0, 0.0, 5.0]], dtype=np.float32), [0, 128, 255]),
        (np.array([[np.nan, 0.0, np.inf]], dtype=np.float32), [0, 0, 0]),
        (np.array([[np.nan, np.nan, np.nan]], dtype=np.float32), [0, 0, 0]),
        (np.array([[0, 1_000_000, 2_000_000]], dtype=np.int32), [0, 128, 255]),
        (np.array([[7, 7, 7]], dtype=np.int32), [7, 7, 7]),
        (np.array([[-7, -7, -7]], dtype=np.int32), [0, 0, 0]),
    ],
)
def test_other_depths_are_scaled(tmp_path, values, expected):
    Image.fromarray(values).save(tmp_path / "deep.tiff")
    assert pixels(open_image(tmp_path / "deep.tiff"))[0, :, 0].tolist() == expected


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [("jpg", mode) for mode in ("1", "L", "CMYK", "YCbCr")]
    + [("png", mode) for mode in ("1", "L", "P")]
    + [("tiff", mode) for mode in ("1", "L", "P", "CMYK", "YCbCr")],
)
def test_other_modes_become_rgb(tmp_path, suffix, mode):
    image = Image.new("RGB", (16, 16), (204, 204, 204)).convert(mode)
    image.save(tmp_path / f"x.{suffix}")
    opened = open_image(tmp_path / f"x.{suffix}")
    assert opened.mode == "RGB"
    assert mode == "1" or np.abs(pixels(opened) - 204).max() <= 3


@pytest.mark.parametrize("suffix", ["gif", "webp", "png", "tiff", "avif", "heic", "mpo"])
def test_the_first_frame_is_taken(tmp_path, suffix):
    frames = [Image.new("RGB", (64, 64), color) for color in ("red", "blue", "green")]
    path = tmp_path / f"moving.{suffix}"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert np.abs(pixels(open_image(path)) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize("suffix", ["bmp", "ppm", "jp2", "jfif", "qoi", "avif", "heic", "hif"])
def test_other_formats(tmp_path, suffix):
    image = Image.new("RGB", (32, 32), (10, 200, 60))
    if suffix == "qoi":
        header = b"qoif" + struct.pack(">II", 1, 1) + b"\x03\x00"
        (tmp_path / "x.qoi").write_bytes(header + b"\xfe\x0a\xc8\x3c" + b"\0" * 7 + b"\1")
    else:
        image.save(tmp_path / f"x.{suffix}")
    assert len(scan_images(tmp_path).files) == 1
    assert np.abs(pixels(open_image(tmp_path / f"x.{suffix}")) - (10, 200, 60)).max() <= 4


def test_the_name_does_not_matter(tmp_path):
    noise().save(tmp_path / "x.gif", format="PNG")
    assert np.array_equal(pixels(open_image(tmp_path / "x.gif")), pixels(noise()))


def test_min_side_decodes_large_jpegs_smaller(tmp_path):
    path = tmp_path / "large.jpg"
    noise((1200, 800)).save(path)
    assert open_image(path).size == (1200, 800)
    assert open_image(path, min_side=112).size == (300, 200)
    assert open_image(path, min_side=850).size == (1200, 800)
    noise().save(tmp_path / "x.png")
    assert open_image(tmp_path / "x.png", min_side=8).size == (96, 64)


def png_header(width, height):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    idat = b"IDAT" + zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (chunk, idat, b"IEND")
    )


def bmp_header(width, height):
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


def test_bombs_are_refused_before_decoding(tmp_path):
    bombs = {
        "bomb.png": png_header(60000, 60000),
        "bomb.bmp": bmp_header(60000, 60000),
        "bomb.gif": b"GIF89a" + struct.pack("<HHBBB", 60000, 60000, 0, 0, 0) + b",",
        "bomb.ppm": b"P6 60000 60000 255\n",
    }
    start = time.process_time()
    for name, content in bombs.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImageError) as caught:
            open_image(tmp_path / name)
        assert name != "bomb.png" or "60000 x 60000 pixels" in caught.value.reason
    assert time.process_time() - start < 2


def test_the_limit_is_ours_and_nothing_warns(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4000)
    noise().save(tmp_path / "x.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_image(tmp_path / "x.png", max_pixels=96 * 64).size == (96, 64)
        with pytest.raises(ImageError, match=r"96 x 64 pixels \(at most 0\.006143 million"):
            open_image(tmp_path / "x.png", max_pixels=96 * 64 - 1)


def test_unreadable_files_are_reported(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("Dear Sir")
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    expected = {
        "empty.jpg": "the file is empty",
        "text.jpg": "not an image in a known format",
        "folder.jpg": "not an ordinary file",
        "pipe.jpg": "not an ordinary file",
        "gone/x.jpg": "cannot be read (No such file or directory)",
        "n" * 300: "cannot be read (File name too long)",
    }
    for name, reason in expected.items():
        with pytest.raises(ImageError) as caught:
            open_image(tmp_path / name)
        assert caught.value.reason == reason
        assert caught.value.path == tmp_path / name
        if reason.startswith("cannot") or "ordinary" in reason:
            with pytest.raises(ImageError):
                content_hash(tmp_path / name)


def test_impossible_names_are_reported():
    # Python's words for it differ between versions.
    for function in (open_image, content_hash):
        with pytest.raises(ImageError, match=r"cannot be read .*embedded null"):
            function("nul\0.jpg")


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(ImageError("a\udcff.jpg", "broken")))
    assert str(error) == "a\\xff.jpg: broken"


def mutations(rng):
    """Yield the contents of 300 files, most of them damaged."""
    originals = []
    for suffix, options in [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "jpeg"}),
        ("HEIF", {}),
        ("AVIF", {}),
        ("BMP", {}),
        ("PPM", {}),
        ("JPEG2000", {}),
    ]:
        exif = Image.Exif()
        exif[0x0112] = 6
        exif[0x010E] = "words"
        buffer = io.BytesIO()
        extra = {"exif": exif} if suffix in {"JPEG", "PNG", "WEBP"} else {}
        noise((40, 30), seed=len(originals)).save(buffer, format=suffix, **options, **extra)
        originals.append(buffer.getvalue())
    for number in range(300):
        content = bytearray(originals[number % len(originals)])
        kind = (number // len(originals)) % 5
        if kind == 0:
            content = content[: rng.integers(0, len(content))]
        elif kind == 1:
            for _ in range(rng.integers(1, 20)):
                content[rng.integers(0, len(content))] ^= 1 << rng.integers(0, 8)
        elif kind == 2:
            # The header decides how the rest is read.
            for _ in range(rng.integers(1, 6)):
                content[rng.integers(0, min(200, len(content)))] = rng.integers(0, 256)
        elif kind == 3:
            start = rng.integers(0, len(content))
            content[start : start + 30] = rng.bytes(rng.integers(0, 60))
        else:
            content = content[:20] + rng.bytes(rng.integers(0, 500))
        yield number, bytes(content)


def outcome(path):
    try:
        return open_image(path, min_side=16, max_pixels=10_000_000)
    except ImageError as error:
        return error.reason


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_damaged_files_are_opened_or_reported(tmp_path, action):
    suffixes = ["jpg", "png", "gif", "webp", "tiff", "bmp"]
    outcomes = []
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        for number, content in mutations(np.random.default_rng(7)):
            path = tmp_path / f"{number}.{suffixes[number % 6]}"
            path.write_bytes(content)
            outcomes.append(outcome(path))
    assert len(outcomes) == 300
    reasons = [one for one in outcomes if isinstance(one, str)]
    assert 20 < len(reasons) < 280
    assert all(reason and "\n" not in reason for reason in reasons)
    opened = [one for one in outcomes if not isinstance(one, str)]
    assert all(image.mode == "RGB" and min(image.size) > 0 for image in opened)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tiff", "avif", "heic", "jp2", "gif"])
def test_bytes_open_as_files_do(tmp_path, suffix):
    path = tmp_path / f"noise.{suffix}"
    noise((700, 500)).save(path)
    content = path.read_bytes()
    for side in (None, 100):
        expected = open_image(path, min_side=side)
        assert np.array_equal(open_image_bytes(content, path, min_side=side), expected)
    assert image_bytes_hash(content, path) == content_hash(path)


@pytest.mark.parametrize("content", [b"", b"no image", b"\xff\xd8\xff" + bytes(300_000)])
def test_bad_bytes_are_refused_as_files_are(tmp_path, content):
    path = tmp_path / "bad.jpg"
    path.write_bytes(content)
    with pytest.raises(ImageError) as expected:
        open_image(path)
    with pytest.raises(ImageError) as found:
        open_image_bytes(content, path)
    assert str(found.value) == str(expected.value)
