import io
import os
from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image

from nouncut.images.hashing import content_hash
from nouncut.images.thumbnails import Original, encode_thumbnail, make_thumbnails


def opened(thumbnail):
    return Image.open(io.BytesIO(b64decode(thumbnail.data_uri().split(",", 1)[1])))


def original(path):
    return Original(path, content_hash(path))


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    Image.new("RGB", (400, 100), "red").save(path)
    return path


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_they_are_small_and_keep_the_shape(tmp_path, photo, n_jobs):
    tiny = tmp_path / "tiny.png"
    Image.new("RGB", (4, 2)).save(tiny)
    originals = {3: original(photo), 5: original(tiny)}
    made = make_thumbnails(originals, tmp_path / "small", 80, n_jobs=n_jobs)
    assert opened(made[3]).size == (80, 20)
    assert opened(made[5]).size == (4, 2)


def test_they_are_upright_and_hold_no_metadata(tmp_path):
    path = tmp_path / "phone.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "at home"
    image = Image.new("RGB", (400, 200), "blue")
    image.paste("red", (0, 0, 200, 200))
    image.save(path, exif=exif)
    small = opened(make_thumbnails({0: original(path)}, tmp_path / "small", 100)[0])
    assert small.size == (50, 100)
    assert not small.getexif()
    red, _, blue = small.convert("RGB").getpixel((25, 10))
    assert red > 200 > 60 > blue


def test_they_are_made_once(tmp_path, photo):
    originals = {0: original(photo)}
    first = make_thumbnails(originals, tmp_path / "small", 80)
    changed = first[0].file.stat().st_mtime_ns
    photo.unlink()
    again = make_thumbnails(originals, tmp_path / "small", 80)
    assert again == first
    assert again[0].file.stat().st_mtime_ns == changed
    assert make_thumbnails(originals, tmp_path / "small", 90)[0].problem == "the file is gone"


def test_copies_share_one_and_leave_nothing_behind(tmp_path, photo):
    originals = dict.fromkeys(range(50), original(photo))
    made = make_thumbnails(originals, tmp_path / "small", 80, n_jobs=4)
    assert len({thumbnail.file for thumbnail in made.values()}) == 1
    assert len(list((tmp_path / "small" / "80").iterdir())) == 1


def test_a_missing_thumbnail_has_a_reason(tmp_path, photo):
    broken = tmp_path / "broken.png"
    broken.write_bytes(photo.read_bytes()[:60])
    known = original(photo)
    photo.write_bytes(b"something else")
    originals = {
        0: original(broken),
        1: known,
        2: Original(tmp_path / "gone.png", "0" * 40),
        3: Original(photo, None),
        4: Original(tmp_path, "0" * 40),
    }
    made = make_thumbnails(originals, tmp_path / "small", 80)
    assert [made[number].data_uri() for number in made] == [None] * 5
    assert "broken" in made[0].problem
    assert "changed" in made[1].problem
    assert made[2].problem == "the file is gone"
    assert made[3].problem == "no picture is known"
    assert made[4].problem == "not an ordinary file"


def test_a_forged_hash_leads_nowhere(tmp_path, photo):
    secret = tmp_path / "secret.webp"
    Image.new("RGB", (4, 4)).save(secret)
    forged = Original(Path("x"), os.path.join("..", "..", "secret"))
    made = make_thumbnails({0: forged}, tmp_path / "small", 80)
    assert made[0].data_uri() is None


def test_a_single_thumbnail_is_a_jpeg(photo):
    with Image.open(photo) as picture:
        small = Image.open(io.BytesIO(encode_thumbnail(picture, 80)))
    assert (small.format, small.size) == ("JPEG", (80, 20))


def test_progress_reaches_the_end(tmp_path, photo):
    calls = []
    originals = dict.fromkeys(range(100), original(photo))
    make_thumbnails(originals, tmp_path, 80, progress=lambda *call: calls.append(call))
    assert calls == [("making thumbnails", 64, 100), ("making thumbnails", 100, 100)]


@pytest.mark.parametrize("path", ["s3://bucket/a.jpg", "/data/b.tar#c.jpg", "/data/d.parquet#7"])
def test_images_elsewhere_have_thumbnails_of_other_sizes(tmp_path, photo, path):
    content = content_hash(photo)
    missing = make_thumbnails({0: Original(Path(path), content)}, tmp_path / "made", 60)[0]
    assert missing.problem == "the image is in a tar, a table or an object store"
    make_thumbnails({0: original(photo)}, tmp_path / "made", 80)
    made = make_thumbnails({0: Original(Path(path), content)}, tmp_path / "made", 60)[0]
    assert opened(made).size == (60, 15)
