"""Files are read once, and again when they change."""

from __future__ import annotations

import sys
import time

import pytest

from nouncut.images.find import scan_images
from nouncut.images.hashing import image_hash
from nouncut.runs import image_set
from nouncut.runs.image_set import hash_images
from nouncut.store.store import FeatureStore


@pytest.fixture
def hashed(draw, tmp_path, monkeypatch):
    """Return a function that hashes all pictures as if a minute had passed, and what it read."""
    store = FeatureStore(tmp_path / "store")

    def run(seconds_later=60):
        read = []
        monkeypatch.setattr(image_set.time, "time", lambda now=time.time: now() + seconds_later)
        monkeypatch.setattr(
            image_set, "image_hash", lambda path: read.append(path.name) or image_hash(path)
        )
        found = hash_images(scan_images(draw(range(0))), store, n_jobs=2)
        monkeypatch.undo()
        assert found.hashes == tuple(image_hash(path) for path in found.paths)
        return sorted(read)

    return run


@pytest.mark.skipif(sys.platform == "win32", reason="files are always read on Windows")
def test_only_files_that_are_new_or_changed_are_read(hashed, draw):
    folder = draw(range(5))
    assert hashed() == [f"{number:02}.png" for number in range(5)]
    assert hashed() == []
    draw(range(5, 6))
    (folder / "01.png").write_bytes((folder / "02.png").read_bytes())
    assert hashed() == ["01.png", "05.png"]
    assert hashed() == []


def test_files_that_have_just_been_written_are_read_each_time(hashed, draw):
    draw(range(3))
    assert len(hashed(seconds_later=0)) == 3
    assert len(hashed(seconds_later=0)) == 3


def test_files_that_cannot_be_read_are_skipped(draw, tmp_path):
    folder = draw(range(3))
    scan = scan_images(folder)
    (folder / "01.png").unlink()
    found = hash_images(scan, FeatureStore(tmp_path / "store"))
    assert [path.name for path in found.paths] == ["00.png", "02.png"]
    assert [file.path.name for file in found.skipped] == ["01.png"]
