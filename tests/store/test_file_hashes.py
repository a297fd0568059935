"""Hashes of files are used again only while nothing about a file has changed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from nouncut.store.file_hashes import (
    FILES_NAME,
    file_state,
    forget_hashes,
    keep_hashes,
    known_hashes,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no time of change")


def states(*paths: Path):
    return {path: file_state(path) for path in paths}


@pytest.fixture
def kept(tmp_path):
    """Return a file whose hash is kept, and the folder that it is kept in."""
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"first")
    keep_hashes(tmp_path, {path: (file_state(path), "abc")})
    assert known_hashes(tmp_path, states(path)) == {path: "abc"}
    return path


def test_an_edit_that_keeps_size_and_date_is_seen(kept):
    before = kept.stat()
    kept.write_bytes(b"other")
    os.utime(kept, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (kept.stat().st_size, kept.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert known_hashes(kept.parent, states(kept)) == {}


def test_another_file_in_its_place_is_seen(kept, tmp_path):
    other = tmp_path / "other.jpg"
    other.write_bytes(b"other")
    before = kept.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(kept)
    assert known_hashes(tmp_path, states(kept)) == {}


def test_a_file_that_has_just_changed_may_change_again_unseen(kept):
    state = file_state(kept)
    assert not state.is_settled(time.time())
    assert state.is_settled(time.time() + 60)


def test_new_hashes_replace_old_ones_until_all_are_forgotten(kept, tmp_path):
    keep_hashes(tmp_path, {kept: (file_state(kept), "def")})
    assert known_hashes(tmp_path, states(kept)) == {kept: "def"}
    forget_hashes(tmp_path)
    assert known_hashes(tmp_path, states(kept)) == {}


def test_names_that_are_no_text_and_many_files(tmp_path):
    names = [*(f"{number}.jpg" for number in range(2000)), "undecodable \udce9.jpg"]
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.touch()
    found = {path: (file_state(path), path.stem[:1]) for path in paths}
    keep_hashes(tmp_path, found)
    assert known_hashes(tmp_path, states(*paths)) == {path: path.stem[:1] for path in paths}


def test_damaged_hashes_and_a_folder_without_room_only_cost_time(kept, tmp_path):
    (tmp_path / FILES_NAME).write_bytes(b"no database" * 1000)
    assert known_hashes(tmp_path, states(kept)) == {}
    keep_hashes(tmp_path, {kept: (file_state(kept), "def")})
    assert known_hashes(tmp_path, states(kept)) == {kept: "def"}
    nowhere = tmp_path / "nowhere"
    keep_hashes(nowhere, {kept: (file_state(kept), "def")})
    assert known_hashes(nowhere, states(kept)) == {}


def test_the_state_of_what_is_not_there_is_unknown(tmp_path):
    assert file_state(tmp_path / "gone.jpg") is None
    assert file_state(Path("no\0name")) is None
