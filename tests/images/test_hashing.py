import os

import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.hashing import content_hash, image_hash


def test_the_hash_depends_on_the_content_only(tmp_path):
    content = os.urandom(3_000_000)
    for name in ("a.png", "b.jpg"):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "c.png").write_bytes(content[:-1])
    hashes = [content_hash(tmp_path / name) for name in ("a.png", "b.jpg", "c.png")]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_hash_stays_the_same_in_every_version(tmp_path):
    # Stored features are found by this hash.
    (tmp_path / "a.png").write_bytes(b"abc")
    assert content_hash(tmp_path / "a.png") == "384264f676f39536840523f284921cdc68b6846b"


def test_images_have_the_hash_of_their_content(tmp_path):
    Image.new("RGB", (4, 3)).save(tmp_path / "a.png")
    (tmp_path / "tiny.gif").write_bytes(b"GIF89a")
    # A RAW photo is known by its suffix: most kinds have no common signature.
    (tmp_path / "b.raf").write_bytes(b"FUJIFILMCCD-RAW")
    for name in ("a.png", "tiny.gif", "b.raf"):
        assert image_hash(tmp_path / name) == content_hash(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"x", "not an image in a known format"),
        (b"Dear Sir, ..........", "not an image in a known format"),
        (b"\xff\xd8", "not an image in a known format"),
    ],
)
def test_other_files_are_refused(tmp_path, content, reason):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(ImageError) as caught:
        image_hash(tmp_path / "a.jpg")
    assert caught.value.reason == reason
