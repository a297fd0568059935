from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import InputError, OutputError
from nouncut.exports.registry import export_run

LIST = ".nouncut-album.json"
GPS = 0x8825


class Page(HTMLParser):
    """The elements of a page, and the files that it names."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def addresses(self) -> list[str]:
        return [one[name] for _, one in self.elements for name in ("src", "href") if one.get(name)]

    def ids(self) -> set[str]:
        return {one["id"] for _, one in self.elements if "id" in one}


def pages_of(album: Path) -> list[Path]:
    return [album / "index.html", *sorted((album / "groups").iterdir())]


def files_of(album: Path) -> dict[str, bytes]:
    return {
        path.relative_to(album).as_posix(): path.read_bytes()
        for path in album.rglob("*")
        if path.is_file() and path.name != LIST
    }


@pytest.fixture
def photos(tmp_path):
    """Return photos with a place and a name of a camera: a wide one, a turned one, a small one."""
    folder = tmp_path / "Our Trip"
    folder.mkdir()
    rng = np.random.default_rng(0)
    paths = []
    for number, size in enumerate([(2400, 1200), (900, 600), (40, 30), (41, 31)]):
        pixels = rng.integers(0, 255, (size[1] // 10, size[0] // 10, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).resize(size)
        exif = Image.Exif()
        exif[0x0110] = "SecretCam"
        if number == 1:
            exif[0x0112] = 6
        exif.get_ifd(GPS).update({1: "N", 2: (52.0, 31.0, 12.0)})
        paths.append(folder / f"IMG_{number}.jpg")
        image.save(paths[-1], exif=exif)
    return paths


@pytest.fixture
def run(write_run, photos):
    return write_run(photos, [0, 0, 0, 1], ["beach & sea", "hotel"])


def test_every_address_in_a_page_is_there(shared_run, tmp_path):
    album = export_run(shared_run, "album", tmp_path / "album").path
    named = set()
    for path in pages_of(album):
        page = Page(path)
        for address in page.addresses():
            file, _, place = address.partition("#")
            if file:
                target = (path.parent / unquote(file)).resolve()
                assert target.is_file()
                named.add(target)
            else:
                assert place in page.ids()
    assert named == {(album / name).resolve() for name in files_of(album)}


def test_names_that_bite_are_text(shared_run, tmp_path):
    album = export_run(shared_run, "album", tmp_path / "album").path
    index = Page(album / "index.html")
    for name in shared_run.names:
        assert name in index.text
    for path in pages_of(album):
        page = Page(path)
        tags = [tag for tag, _ in page.elements]
        assert tags.count("script") == 1
        assert not {"b", "i", "u", "iframe", "object", "link", "form"} & set(tags)
        assert not any(
            name.startswith("on") or name == "style" for _, one in page.elements for name in one
        )
        assert not any(re.match(r"[a-z]+:", address) for address in page.addresses())
        (policy,) = (one["content"] for _, one in page.elements if "http-equiv" in one)
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_pictures_are_upright_small_enough_and_without_metadata(run, photos, tmp_path):
    album = export_run(run, "album", tmp_path / "album").path
    sizes = []
    for folder, side in (("pictures", 1600), ("thumbnails", 480)):
        for path in (album / folder).iterdir():
            content = path.read_bytes()
            for secret in (b"SecretCam", b"Exif", b"IMG_", b"xap/1.0"):
                assert secret not in content
            with Image.open(path) as picture:
                assert picture.format == "JPEG"
                assert not picture.getexif()
                assert max(picture.size) <= side
                sizes.append((folder, picture.size))
    assert {size for folder, size in sizes if folder == "pictures"} == {
        (1600, 800),
        (600, 900),
        (40, 30),
        (41, 31),
    }
    assert b"SecretCam" in photos[0].read_bytes()


def test_titles_and_names_of_files(run, tmp_path):
    album = export_run(run, "album", tmp_path / "album").path
    assert "Our Trip" in Page(album / "index.html").text
    beach = album / "groups" / "beach & sea.html"
    assert "IMG_0" in beach.read_text()
    quiet = export_run(run, "album", tmp_path / "quiet", title="Italy", file_names=False).path
    assert "Italy" in Page(quiet / "index.html").text
    for path in pages_of(quiet):
        assert "IMG_" not in path.read_text()
        assert "Our Trip" not in path.read_text()


def test_an_album_of_a_part(run, tmp_path):
    album = export_run(run, "album", tmp_path / "album", rows=[1, 3]).path
    assert "2 pictures in 2 groups" in Page(album / "index.html").text
    assert len(list((album / "pictures").iterdir())) == 2
    run.set_aside(3)
    result = export_run(run, "album", tmp_path / "other", rows=[1, 3])
    assert result.n_images == 1
    assert result.problems == ["1 image left out: set aside"]
    with pytest.raises(InputError, match="not set aside"):
        export_run(run, "album", tmp_path / "none", rows=[3])


def test_an_album_again_has_only_what_it_should(run, tmp_path):
    album = tmp_path / "album"
    first = export_run(run, "album", album)
    assert (first.n_written, first.n_kept) == (4, 0)
    (album / "groups" / "note.txt").write_text("mine")
    run.merge([0, 1])
    run.rename(0, "all")
    run.set_aside(2)
    times = {path: path.stat().st_mtime_ns for path in (album / "pictures").iterdir()}
    again = export_run(run, "album", album)
    assert (again.n_written, again.n_kept, again.n_removed) == (0, 3, 4)
    assert all(path.stat().st_mtime_ns == times[path] for path in (album / "pictures").iterdir())
    fresh = files_of(export_run(run, "album", tmp_path / "fresh").path)
    assert files_of(album) == fresh | {"groups/note.txt": b"mine"}


def test_pages_of_others_are_not_overwritten(run, tmp_path):
    album = tmp_path / "album"
    album.mkdir()
    (album / "index.html").write_text("mine")
    for preview in (True, False):
        with pytest.raises(OutputError, match=r"index\.html exists already"):
            export_run(run, "album", album, preview=preview)
    assert [path.name for path in album.iterdir()] == ["index.html"]
    export_run(run, "album", album, overwrite=True)
    changed = album / "groups" / "hotel.html"
    changed.write_text("changed by hand")
    with pytest.raises(OutputError, match=r"hotel\.html exists already"):
        export_run(run, "album", album)
    assert changed.read_text() == "changed by hand"


def test_pictures_that_were_changed_are_made_again(run, tmp_path):
    album = export_run(run, "album", tmp_path / "album").path
    whole = files_of(album)
    for path in (album / "pictures").iterdir():
        path.write_bytes(b"")
    export_run(run, "album", album)
    assert files_of(album) == whole


def test_images_that_are_gone_or_changed_are_told(run, photos, tmp_path):
    photos[1].unlink()
    photos[2].write_bytes(photos[3].read_bytes())
    result = export_run(run, "album", tmp_path / "album")
    assert (result.n_images, len(result.problems)) == (2, 2)
    assert "has changed since the run" in result.problems[1]
    assert "1 picture" in Page(result.path / "groups" / "beach & sea.html").text
    assert {path.is_file() for path in result.files} == {True}


def test_an_album_that_was_interrupted_can_be_finished(run, tmp_path, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr("nouncut.exports.album._policy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export_run(run, "album", tmp_path / "album")
    result = export_run(run, "album", tmp_path / "album")
    assert (result.n_written, result.n_kept) == (0, 4)


def test_nothing_is_written_through_a_link(run, tmp_path):
    (tmp_path / "album").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "album" / "pictures").symlink_to(tmp_path / "outside")
    with pytest.raises(OutputError, match="is a link or a file"):
        export_run(run, "album", tmp_path / "album")
    assert list((tmp_path / "outside").iterdir()) == []
