import io
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.find import scan_images
from nouncut.images.open import open_image


def jpeg(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95, subsampling=0, **options)
    return buffer.getvalue()


def is_upright(image, corners):
    """Compare the colours at the centres of the six fields."""
    width, height = image.size
    pixels = np.asarray(image).astype(int)
    found = pixels[[height // 4, 3 * height // 4]][:, [width // 6, width // 2, 5 * width // 6]]
    return np.abs(found - corners(side=1)).max() < 8


def reason(path, **options):
    with pytest.raises(ImageError) as caught:
        open_image(path, **options)
    return caught.value.reason


@pytest.fixture
def without_rawpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_without_a_preview_is_developed(tmp_path, write_dng, orientation, corners):
    path = write_dng(tmp_path / "x.dng", corners(orientation, side=40), orientation)
    image = open_image(path)
    assert (image.mode, image.size) == ("RGB", (120, 80))
    assert is_upright(image, corners)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_large_preview_is_used(tmp_path, write_dng, orientation, corners):
    # The sensor saw nothing, so the colours come from the preview.
    dark = np.zeros((80, 120, 3), dtype=np.uint8)
    preview = jpeg(corners(orientation, side=260))
    image = open_image(write_dng(tmp_path / "x.dng", dark, orientation, preview))
    assert image.size == (780, 520)
    assert is_upright(image, corners)
    assert 0x0112 not in image.getexif()


@pytest.mark.parametrize(("own", "expected"), [(None, 6), (3, 3)])
def test_the_orientation_of_the_preview_comes_first(tmp_path, write_dng, own, expected, corners):
    exif = Image.Exif()
    exif[0x010E] = "a preview with metadata"
    if own:
        exif[0x0112] = own
    preview = jpeg(corners(expected, side=260), exif=exif)
    # Cameras write EXIF instead of JFIF, not behind it.
    assert preview[2:4] == b"\xff\xe0"
    preview = preview[:2] + preview[4 + int.from_bytes(preview[4:6], "big") :]
    dark = np.zeros((80, 120, 3), dtype=np.uint8)
    image = open_image(write_dng(tmp_path / "x.dng", dark, 6, preview))
    assert is_upright(image, corners)


def test_a_small_preview_is_not_taken_for_the_photo(tmp_path, write_dng, corners):
    preview = jpeg(np.zeros((120, 160, 3), dtype=np.uint8))
    image = open_image(write_dng(tmp_path / "x.dng", corners(6, side=40), 6, preview))
    assert image.size == (120, 80)
    assert is_upright(image, corners)


def test_a_damaged_preview_does_not_prevent_developing(tmp_path, write_dng, corners):
    preview = jpeg(corners(side=260))
    path = write_dng(tmp_path / "x.dng", corners(side=40), 1, preview)
    content = path.read_bytes()
    path.write_bytes(content.replace(preview[:1000], bytes(1000)))
    assert open_image(path).size == (120, 80)


def test_large_sensors_are_developed_at_half_size(tmp_path, write_dng, corners):
    image = open_image(write_dng(tmp_path / "x.dng", corners(side=520)))
    assert image.size == (780, 520)
    assert is_upright(image, corners)


def test_min_side_reaches_the_preview(tmp_path, write_dng, corners):
    dark = np.zeros((80, 120, 3), dtype=np.uint8)
    path = write_dng(tmp_path / "x.dng", dark, 1, jpeg(corners(side=400)))
    assert open_image(path, min_side=150).size == (300, 200)


@pytest.mark.parametrize("name", ["x.tif", "x", "x.jpg"])
def test_a_raw_photo_is_known_by_its_content(tmp_path, write_dng, name, corners):
    preview = jpeg(np.zeros((120, 160, 3), dtype=np.uint8))
    assert open_image(write_dng(tmp_path / name, corners(side=40), 1, preview)).size == (120, 80)


def test_another_image_with_the_suffix_of_a_raw_photo(tmp_path, corners):
    (tmp_path / "x.nef").write_bytes(jpeg(corners(side=40)))
    assert open_image(tmp_path / "x.nef").size == (120, 80)


def test_folders_are_searched_for_raw_photos(tmp_path, write_dng, corners):
    write_dng(tmp_path / "x.DNG", corners(side=40))
    assert [path.name for path in scan_images(tmp_path).files] == ["x.DNG"]


def test_without_rawpy_the_remedy_is_named(tmp_path, write_dng, without_rawpy, corners):
    path = write_dng(tmp_path / "x.DNG", corners(side=40))
    Image.fromarray(corners(side=40)).save(tmp_path / "a.jpg")
    (tmp_path / "y.cr2").write_bytes(b"II*\0")
    scan = scan_images(tmp_path)
    assert [path.name for path in scan.files] == ["a.jpg"]
    assert [skipped.reason for skipped in scan.skipped] == [
        "a RAW photo (.dng): install nouncut[raw]",
        "a RAW photo (.cr2): install nouncut[raw]",
    ]
    assert reason(path) == "a RAW photo (.dng): install nouncut[raw]"


@pytest.mark.parametrize("name", ["x.tif", "x"])
def test_without_rawpy_a_thumbnail_does_not_pass_for_the_photo(
    tmp_path, write_dng, without_rawpy, name, corners
):
    preview = jpeg(np.zeros((120, 160, 3), dtype=np.uint8))
    path = write_dng(tmp_path / name, corners(side=40), 1, preview)
    with Image.open(path) as thumbnail:
        assert thumbnail.size == (160, 120)
    assert reason(path).endswith(": install nouncut[raw]")


def test_damaged_files_are_reported_and_nothing_is_printed(tmp_path, write_dng, capfd, corners):
    path = write_dng(tmp_path / "x.dng", corners(side=40))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert reason(path) == "the RAW photo is broken (the file ends too early)"
    path.write_bytes(b"II*\0" + bytes(2000))
    assert reason(path) == "a RAW photo of a kind that LibRaw cannot read"
    path.write_bytes(b"")
    assert reason(path) == "the file is empty"
    assert capfd.readouterr().err == ""


def test_mutations_are_opened_or_reported(tmp_path, write_dng, capfd, corners):
    rng = np.random.default_rng(3)
    preview = jpeg(corners(side=260))
    whole = write_dng(tmp_path / "x.dng", corners(side=40), 6, preview).read_bytes()
    outcomes = []
    for number in range(80):
        content = bytearray(whole)
        for _ in range(1 + number % 6):
            content[rng.integers(0, 500)] = rng.integers(0, 256)
        if number % 4 == 0:
            content = content[: rng.integers(0, len(content))]
        (tmp_path / "y.dng").write_bytes(content)
        try:
            outcomes.append(open_image(tmp_path / "y.dng", max_pixels=10**6).size)
        except ImageError as error:
            outcomes.append(error.reason)
    assert capfd.readouterr().err == ""
    assert 10 < sum(isinstance(one, str) for one in outcomes) < 70


def test_bombs_are_refused_before_developing(tmp_path, write_dng, corners):
    path = write_dng(tmp_path / "x.dng", corners(side=40))
    content = path.read_bytes()
    for tag in (256, 257):
        entry = struct.pack("<HHI", tag, 4, 1)
        at = content.index(entry) + len(entry)
        content = content[:at] + struct.pack("<I", 20_000) + content[at + 4 :]
    path.write_bytes(content)
    assert "too large when opened: 20000 x 20000 pixels (at most" in reason(path)
    assert "120 x 80 pixels" in reason(write_dng(path, corners(side=40)), max_pixels=9_599)


def test_threads_share_nothing(tmp_path, write_dng):
    paths = [
        write_dng(tmp_path / f"{number}.dng", np.full((40, 60, 3), 20 * number, np.uint8))
        for number in range(8)
    ]
    expected = [np.asarray(open_image(path)) for path in paths]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(open_image, paths * 3), expected * 3, strict=True):
            assert np.array_equal(np.asarray(found), wanted)


def test_a_monochrome_sensor(tmp_path, write_tiff):
    values = np.linspace(0, 65535, 120 * 80).reshape(80, 120).astype("<u2")
    long, short = 4, 3
    tags = {
        254: (long, (0,)),
        256: (long, (120,)),
        257: (long, (80,)),
        258: (short, (16,)),
        259: (short, (1,)),
        262: (short, (34892,)),  # linear RAW
        271: (2, b"Maker\0"),
        272: (2, b"Model\0"),
        277: (short, (1,)),
        278: (long, (80,)),
        50706: (1, (1, 4, 0, 0)),
    }
    image = open_image(write_tiff(tmp_path / "x.dng", tags, values.tobytes()))
    assert (image.mode, image.size) == ("RGB", (120, 80))
    rows = np.asarray(image).astype(int).mean(axis=(1, 2))
    assert rows[0] < 40 < 200 < rows[-1]
