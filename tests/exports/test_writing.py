from __future__ import annotations

import errno
import os

import pytest

from nouncut.errors import OutputError
from nouncut.exports.writing import make_folders, new_file, part_of, put


def write(path, content, *, then=lambda: None, overwrite=False):
    with new_file(path, overwrite=overwrite) as part:
        part.write_text(content)
        then()


def fill_the_disk():
    raise OSError(errno.ENOSPC, "No space left")


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "a", "half", then=lambda: 1 / 0)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_explained_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"a cannot be written \(No space left\)"):
        write(path, "half", then=fill_the_disk, overwrite=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OutputError, match="exists already"):
        write(path, "ours", then=lambda: path.write_text("theirs"))
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_export_left_is_replaced(tmp_path):
    with part_of(tmp_path / "a") as part:
        left = part
    left.write_text("left behind")
    with new_file(tmp_path / "a") as part:
        assert part == left
        assert not part.exists()
        part.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_drive_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    part, target = tmp_path / "part", tmp_path / "target"
    part.write_text("text")
    put(part, target)
    assert target.read_text() == "text"
    part.write_text("other")
    with pytest.raises(FileExistsError):
        put(part, target)
    assert target.read_text() == "text"


def test_folders_are_not_made_through_links(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    with pytest.raises(NotADirectoryError, match="link to another place"):
        make_folders(root / "link" / "deep", root)
    assert list(outside.iterdir()) == []
    (tmp_path / "alias").symlink_to(root)
    make_folders(tmp_path / "alias" / "a" / "b", tmp_path / "alias")
    assert (root / "a" / "b").is_dir()
