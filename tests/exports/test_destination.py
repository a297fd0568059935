from __future__ import annotations

import errno

import pytest

from nouncut.errors import OutputError
from nouncut.exports.destination import check_export_file, export_file, make_folders


def write(path, content, *, then=lambda: None, overwrite=False):
    with export_file(path, overwrite=overwrite) as file:
        file.write(content)
        then()


def fill_the_disk():
    raise OSError(errno.ENOSPC, "No space left")


def test_folders_are_made(tmp_path):
    write(tmp_path / "new" / "folder" / "a", b"whole")
    assert (tmp_path / "new" / "folder" / "a").read_bytes() == b"whole"


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "a", b"half", then=lambda: 1 / 0)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_explained_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"No room left for a .*choose another `output`"):
        write(path, b"half", then=fill_the_disk, overwrite=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_is_kept_unless_it_may_be_overwritten(tmp_path):
    path = tmp_path / "a"
    check_export_file(path)
    path.write_text("mine")
    for refused in (check_export_file, lambda path: write(path, b"ours")):
        with pytest.raises(OutputError, match=r"exists already.*`output`.*`overwrite=True`"):
            refused(path)
    assert path.read_text() == "mine"
    check_export_file(path, overwrite=True)
    write(path, b"ours", overwrite=True)
    assert path.read_text() == "ours"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OutputError, match="exists already"):
        write(path, b"ours", then=lambda: path.write_text("theirs"))
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_dangling_link_is_not_written_through(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="exists already"):
        write(tmp_path / "link", b"ours")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_or_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder is a folder"):
        write(tmp_path / "folder", b"ours", overwrite=True)
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "a", tmp_path / "file" / "deep" / "a"):
        with pytest.raises(OutputError, match=r"file.* cannot be used: a file is in the way"):
            write(path, b"ours")


def test_folders_are_not_made_through_links(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError, match=f"{name} is a link or a file"):
            make_folders(root / name / "deep", root)
    assert list(outside.iterdir()) == []
    (tmp_path / "alias").symlink_to(root)
    make_folders(tmp_path / "alias" / "a" / "b", tmp_path / "alias")
    assert (root / "a" / "b").is_dir()
