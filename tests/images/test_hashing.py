import os

from nouncut.images.hashing import content_hash


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
