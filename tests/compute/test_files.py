from __future__ import annotations

import errno
import os

import pytest

from nouncut.compute.files import (
    atomic_file,
    explained_writing,
    remove_temporary,
    temporary_path,
)
from nouncut.errors import OutputError, ParameterError


def write(path, content, *, then=lambda: None, **options):
    with atomic_file(path, **options) as file:
        file.write(content)
        then()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("sync", [False, True])
def test_a_file_appears_whole_or_not_at_all(tmp_path, replace, sync):
    path = tmp_path / "a"
    with pytest.raises(ZeroDivisionError):
        write(path, b"half", then=lambda: 1 / 0, replace=replace, sync=sync)
    assert list(tmp_path.iterdir()) == []
    write(path, b"whole", replace=replace, sync=sync)
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_old_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write(path, b"half", then=lambda: 1 / 0)
    assert path.read_text() == "old"
    write(path, b"new")
    assert path.read_text() == "new"


def refuse_links(*_):
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", refuse_links)
    path = tmp_path / "a"
    with pytest.raises(FileExistsError):
        write(path, b"ours", then=lambda: path.write_text("theirs"), replace=False)
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_drive_without_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse_links)
    write(tmp_path / "a", b"whole", replace=False)
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_what_a_killed_process_left_is_replaced(tmp_path):
    path = tmp_path / "a"
    temporary_path(path).write_text("left behind")
    write(path, b"whole", replace=False)
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_names_can_be_written(tmp_path):
    path = tmp_path / ("é" * 127 + "n")
    assert len(os.fsencode(path.name)) == 255
    write(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_temporary_files_are_removed(tmp_path):
    for name in ("a", "b"):
        temporary_path(tmp_path / name).touch()
    (tmp_path / "c").touch()
    remove_temporary(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "Free some space, or choose another `output`."),
        (errno.EACCES, "Change its permissions, or choose another `output`."),
        (errno.ENOTDIR, "Remove it, or choose another `output`."),
        (errno.EIO, "Check the drive, or choose another `output`."),
    ],
)
def test_disk_errors_say_what_to_do(number, words):
    with (
        pytest.raises(OutputError, match=words) as caught,
        explained_writing("the run", "here", "choose another `output`"),
    ):
        raise OSError(number, "as the system says")
    assert "as the system says" in str(caught.value)


def test_other_errors_pass_through():
    with pytest.raises(ParameterError), explained_writing("the run", "here", "give up"):
        raise ParameterError("ours")
