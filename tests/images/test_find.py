import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from PIL import Image

from nouncut.errors import InputError, printable_path
from nouncut.images.find import scan_images


def picture(path, color="red"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3), color).save(path, format="PNG")
    return path


def names(scan):
    return [path.name for path in scan.files]


def reasons(scan):
    return {skipped.path.name: skipped.reason for skipped in scan.skipped}


@pytest.fixture
def folder(tmp_path):
    picture(tmp_path / "photos" / "b.png")
    picture(tmp_path / "photos" / "a.JPG")
    picture(tmp_path / "photos" / "deep" / "er" / "c.webp")
    return tmp_path / "photos"


@pytest.fixture
def public_folder():
    """Return a folder that other users can enter; pytest's own belong to one user."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.iterdir():
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_is_searched_with_all_its_subfolders_in_order(folder):
    scan = scan_images(folder)
    assert names(scan) == ["a.JPG", "b.png", "c.webp"]
    assert scan.skipped == ()
    assert scan_images(str(folder)) == scan


def test_several_sources_overlap_without_repeats(folder):
    sources = [folder / "deep", folder, folder / "b.png", f"{folder}/*.png"]
    scan = scan_images(sources)
    assert scan == scan_images(folder) == scan_images(reversed(sources))


def test_patterns(folder):
    assert names(scan_images(f"{folder}/*.png")) == ["b.png"]
    assert names(scan_images(f"{folder}/**/*.[w]ebp")) == ["c.webp"]
    assert names(scan_images(folder / "d*")) == ["c.webp"]
    with pytest.raises(InputError, match="Nothing matches"):
        scan_images(f"{folder}/*.gif")


def test_a_name_that_looks_like_a_pattern_is_taken_literally(tmp_path):
    picture(tmp_path / "set[1]" / "x.png")
    picture(tmp_path / "set1" / "y.png")
    assert names(scan_images(tmp_path / "set[1]")) == ["x.png"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lists(folder, encoding):
    picture(folder / "Ünï.png")
    (folder / "list.txt").write_text(
        "# my favourites\r\nb.png\r\n\r\ndeep\r\nlost.png\r\nÜ*.png\r\n", encoding=encoding
    )
    scan = scan_images(folder / "list.txt")
    assert names(scan) == ["b.png", "c.webp", "Ünï.png"]
    assert reasons(scan) == {"lost.png": "line 5 of list.txt: does not exist"}


def test_a_list_inside_a_folder_is_just_a_file(folder):
    (folder / "list.txt").write_text("nowhere.png\n")
    scan = scan_images([folder, f"{folder}/*"])
    assert len(scan.files) == 3
    assert reasons(scan) == {"list.txt": "not an image (.txt)"}


def test_other_files_are_reported_but_junk_is_not(folder):
    for name in ("Thumbs.db", ".DS_Store", "._b.png", "desktop.ini", "notes.doc", "README"):
        (folder / name).write_text("some text")
    picture(folder / "__MACOSX" / "b.png")
    picture(folder / ".hidden.png")
    picture(folder / ".cache" / "d.png")
    os.mkfifo(folder / "pipe.png")
    picture(folder / "no_suffix")
    scan = scan_images(folder)
    assert names(scan) == ["a.JPG", "b.png", "c.webp", "no_suffix"]
    assert reasons(scan) == {
        "notes.doc": "not an image (.doc)",
        "README": "not an image",
        ".hidden.png": "hidden",
        ".cache": "hidden",
        "pipe.png": "not an ordinary file",
    }


def test_images_that_cannot_be_opened_have_their_own_reason(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)
    for name in ("a.CR2", "b.nef", "c.psd", "d.jxl", "e.mov"):
        (folder / name).write_bytes(b"...")
    (folder / "f.HEIC").write_bytes(b"...")
    scan = scan_images(folder)
    assert names(scan) == ["a.JPG", "b.png", "c.webp", "f.HEIC"]
    unread = "an image format that nouncut cannot read ({}): save it as JPEG or PNG"
    assert reasons(scan) == {
        "a.CR2": "a RAW photo (.cr2): install nouncut[raw]",
        "b.nef": "a RAW photo (.nef): install nouncut[raw]",
        "c.psd": unread.format(".psd"),
        "d.jxl": unread.format(".jxl"),
        "e.mov": "not an image (.mov)",
    }


def test_searching_and_hashing_import_no_decoders(folder):
    script = """
import sys
from nouncut.images.find import scan_images
from nouncut.images.hashing import image_hash
files = scan_images(sys.argv[1]).files
print(len({image_hash(file) for file in files}), {"PIL", "pillow_heif", "rawpy"} & set(sys.modules))
from nouncut.images.open import open_image
open_image(files[0])
print({"pillow_heif", "rawpy", "PIL.TiffImagePlugin"} & set(sys.modules))
"""
    command = [sys.executable, "-c", script, str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["1 set()", "set()"]


def test_named_files_are_recognised_by_content(tmp_path):
    odd, hidden = picture(tmp_path / "odd.dat"), picture(tmp_path / ".hidden" / "x.png")
    text = tmp_path / "text.dat"
    text.write_text("Dear Sir")
    scan = scan_images([odd, hidden.parent, text])
    assert names(scan) == ["x.png", "odd.dat"]
    assert reasons(scan) == {"text.dat": "not an image (.dat)"}


def test_circular_links_and_repeated_files(folder):
    (folder / "deep" / "loop").symlink_to(folder)
    (folder / "a_link").symlink_to(folder / "deep")
    (folder / "0.png").symlink_to(folder / "b.png")
    (folder / "broken.png").symlink_to(folder / "nowhere.png")
    (folder / "itself.png").symlink_to(folder / "itself.png")
    os.link(folder / "b.png", folder / "hard.png")
    scan = scan_images(folder)
    assert names(scan) == ["a.JPG", "b.png", "c.webp"]
    skipped = reasons(scan)
    assert skipped["0.png"] == skipped["hard.png"] == f"the same file as {folder / 'b.png'}"
    assert skipped["a_link"] == f"the same folder as {folder / 'deep'}"
    assert skipped["loop"] == f"the same folder as {folder}"
    assert skipped["broken.png"] == "cannot be read (No such file or directory)"
    assert "links" in skipped["itself.png"]


def test_links_to_other_folders_are_followed(folder, tmp_path):
    picture(tmp_path / "elsewhere" / "e.png")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    assert names(scan_images(folder)) == ["a.JPG", "b.png", "c.webp", "e.png"]


def test_unreadable_folders_are_reported(public_folder, without_privileges):
    picture(public_folder / "a.png")
    picture(public_folder / "locked" / "b.png")
    (public_folder / "locked").chmod(0)
    with without_privileges():
        scan = scan_images(public_folder)
        with pytest.raises(InputError, match="the folder cannot be read"):
            scan_images(public_folder / "locked")
    assert names(scan) == ["a.png"]
    assert reasons(scan) == {"locked": "the folder cannot be read (Permission denied)"}


def test_unreadable_lists_are_reported(public_folder, without_privileges):
    path = public_folder / "list.txt"
    path.write_text("b.png\n")
    path.chmod(0)
    with without_privileges(), pytest.raises(InputError, match=r"list\.txt: cannot be read"):
        scan_images(path)


def test_odd_names(tmp_path):
    odd = [
        b"two\nlines.png",
        "日本語 ñ.png".encode(),
        b"\xff\xfe latin \xe9.png",
        b" .png",
        b"#.png",
    ]
    for name in odd:
        picture(tmp_path / os.fsdecode(name))
    scan = scan_images(tmp_path)
    assert sorted(os.fsencode(path.name) for path in scan.files) == sorted(odd)
    for path in scan.files:
        shown = printable_path(path)
        shown.encode()
        assert "\n" not in shown
    (tmp_path / "list.lst").write_bytes(b"./#.png\n" + odd[2] + b"\n")
    assert len(scan_images(tmp_path / "list.lst").files) == 2


def test_very_deep_folders(tmp_path):
    # Deeper than Python's recursion limit of 1,000.
    deepest = os.path.join(tmp_path, *["d"] * 1100)
    parent = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=parent)
        child = os.open("d", os.O_RDONLY, dir_fd=parent)
        os.close(parent)
        parent = child
    os.close(parent)
    picture(Path(deepest, "a.png"))
    assert names(scan_images(tmp_path)) == ["a.png"]
    # pytest's own clean-up is recursive.
    os.unlink(os.path.join(deepest, "a.png"))
    os.removedirs(deepest)


def test_no_images(tmp_path):
    with pytest.raises(InputError, match=r"No images found in .*nothing at all.*\.jpg"):
        scan_images(tmp_path)
    for number in range(3):
        (tmp_path / f"{number}.doc").write_text("")
    with pytest.raises(InputError, match=r"3 x not an image \(.doc\)"):
        scan_images(tmp_path)
    with pytest.raises(InputError, match="an empty list of paths"):
        scan_images([])


def test_a_missing_path_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"nowhere does not exist. Check the spelling"):
        scan_images(tmp_path / "nowhere")


def test_run_directories_are_skipped_silently_unless_named(tmp_path):
    folder = tmp_path / "photos"
    run = folder / "nouncut-runs" / "photos"
    (run / "report-thumbnails").mkdir(parents=True)
    (run / "manifest.json").write_text('{"nouncut": "0.1.0", "status": "running"}')
    other = folder / "web site"
    other.mkdir()
    (other / "manifest.json").write_text('{"name": "not of nouncut"}')
    for parent in (folder, run / "report-thumbnails", other):
        (parent / "a.jpg").write_bytes(b"...")
    scan = scan_images(folder)
    assert scan.files == (folder / "a.jpg", other / "a.jpg")
    assert [file.path.name for file in scan.skipped] == ["manifest.json"]
    with pytest.raises(InputError, match="a run of nouncut"):
        scan_images(run)
    assert scan_images(run / "report-thumbnails").files == (run / "report-thumbnails" / "a.jpg",)
