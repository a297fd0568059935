import re
import shutil
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from urllib.parse import unquote_to_bytes

import pytest
from PIL import Image

from nouncut.errors import OutputError
from nouncut.images.hashing import content_hash
from nouncut.report.write import write_report
from nouncut.runs.tables import images_table


def images(page):
    """Return the images with a source before any script runs."""
    return [image for image in page.all("img") if "src" in image]


EVENT_HANDLER = re.compile("^on", re.IGNORECASE)


def test_the_report_is_where_the_run_says(small_run, read_page):
    path = write_report(small_run)
    assert path == small_run.report == small_run.directory / "report.html"
    page = read_page(path)
    assert "24 images in 3 groups" in page.text
    assert "Quite sure" in page.text
    assert "comes with nouncut" in page.text
    assert "nouncut predict" in page.text
    assert len([image for image in page.all("img") if image["alt"]]) == 24 + 1
    assert page.of_class("missing") == []


def test_hostile_names_are_text(small_run, read_page):
    page = read_page(write_report(small_run))
    for name in small_run.names:
        assert " ".join(name.split()) in page.text
    assert "<u>puppy</u>" in page.text
    assert "no <CLIP>" in page.text
    assert "<snake>" in page.text
    assert "broken <i>file.jpg" in page.text
    assert not page.all("b") + page.all("u") + page.all("i")
    names = {image["alt"] for image in page.all("img")}
    assert {"two\\nlines.png", 'double"quote.png', "javascript:alert(1).png"} <= names
    assert "<script>alert(1)</script>.png" in {link.get("title") for link in page.all("a")}
    assert "&amp;{{ 7 * 7 }}{% raw %}.png" in names
    for _, attributes in page.elements:
        assert not any(EVENT_HANDLER.match(name) for name in attributes)
        assert "style" not in attributes


def test_every_link_stays_on_the_page_or_leads_to_an_image(small_run, read_page):
    page = read_page(write_report(small_run))
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for link in (attributes["href"] for attributes in page.all("a") if "href" in attributes):
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert link.startswith("../photos/")
            target = bytes(small_run.directory) + b"/" + unquote_to_bytes(link)
            assert content_hash(target.decode("utf-8", "surrogateescape"))


def test_nothing_is_loaded_and_only_our_own_script_may_run(small_run, read_page):
    path = write_report(small_run)
    text, page = path.read_text(encoding="utf-8"), read_page(path)
    (policy,) = (meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag in ("script", "style"):
        contents = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digests = [b64encode(sha256(content.encode()).digest()).decode() for content in contents]
        assert rules[f"{tag}-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    kinds = [script.get("type") for script in page.all("script")]
    assert set(kinds) == {None, "application/json"}
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert all(image["src"].startswith("data:image/webp;base64,") for image in images(page))
    assert not page.all("link") + page.all("iframe")
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "@import" not in text


def test_a_run_of_features_shows_no_images(make_run, tmp_path, read_page):
    run = make_run(tmp_path / "run", source_kind="features")
    page = read_page(write_report(run))
    assert "24 rows in 3 groups" in page.text
    assert "row 17" in page.text
    assert images(page) == []
    assert not (run.directory / "report-thumbnails").exists()


def test_missing_originals_are_labelled_boxes(make_run, tmp_path, read_page):
    run = make_run(tmp_path / "run")
    shutil.rmtree(tmp_path / "photos")
    page = read_page(write_report(run))
    assert images(page) == []
    assert len(page.of_class("missing")) == 25
    assert "<script>alert(1)</script>.png" in {box["title"] for box in page.of_class("missing")}
    assert 'double"quote.png the file is gone' in page.text


def test_it_can_be_rebuilt_without_the_originals(make_run, tmp_path):
    run = make_run(tmp_path / "run")
    first = write_report(run).read_bytes()
    shutil.rmtree(tmp_path / "photos")
    assert write_report(run).read_bytes() == first


@pytest.mark.parametrize("n_images", [0, 1, 5])
def test_one_cluster_or_none(tmp_path, write_run, read_page, n_images):
    paths = [tmp_path / f"{number}.png" for number in range(n_images)]
    for number, path in enumerate(paths):
        Image.new("RGB", (9, 9), (number, 0, 0)).save(path)
    images = images_table(paths, hashes=[content_hash(path) for path in paths])
    page = read_page(write_report(write_run(tmp_path / "run", images, [0] * n_images)))
    assert page.text.count("cluster 1") == (2 if n_images else 0)
    assert "Least sure" not in page.text
    assert "looks alone" in page.text


def test_a_thousand_clusters(tmp_path, write_run, read_page):
    path = tmp_path / "one.png"
    Image.effect_noise((200, 150), 60).save(path)
    images = images_table([path] * 3000, hashes=[content_hash(path)] * 3000)
    report = write_report(write_run(tmp_path / "run", images, [n % 1000 for n in range(3000)]))
    page = read_page(report)
    assert len(page.of_class("cluster")) == 1000
    assert len(page.of_class("covers")) == 0
    assert report.stat().st_size < 30e6


def test_lone_surrogates_are_replaced(make_run, tmp_path):
    run = make_run(tmp_path / "run")
    run.manifest["warnings"] = ["half of \ud83d a face"]
    assert b"half of ? a face" in write_report(run).read_bytes()


def test_an_interruption_keeps_the_old_report_and_leaves_nothing(small_run):
    before = write_report(small_run).read_bytes()
    small_run.rename(0, "new")
    names = {path.name for path in small_run.directory.iterdir()}

    def interrupt(stage, done, total):
        # All thumbnails are made last, when most of the page is written.
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_report(small_run, progress=interrupt)
    assert small_run.report.read_bytes() == before
    assert {path.name for path in small_run.directory.iterdir()} == names


def test_a_directory_that_cannot_be_written_to_is_named(small_run):
    (small_run.directory / "report-thumbnails").write_bytes(b"in the way")
    place = re.escape(str(small_run.directory))
    with pytest.raises(OutputError, match=f"{place} cannot be used.*copy the run to another"):
        write_report(small_run)


def test_names_can_be_given(make_run, tmp_path, read_page):
    run = make_run(tmp_path / "run")
    before, found = write_report(run).read_bytes(), run.names
    run.rename(1, "<em>Tom</em>")
    page = read_page(write_report(run))
    assert "<em>Tom</em>" in page.text
    assert found[1] not in page.text
    assert found[0] in page.text
    run.undo()
    assert write_report(run).read_bytes() == before


def test_progress_counts_all_thumbnails(small_run):
    calls = []
    write_report(small_run, progress=lambda *call: calls.append(call), n_jobs=2)
    assert calls == [("making thumbnails", 24, 48), ("making thumbnails", 48, 48)]


def test_runs_in_one_folder_share_thumbnails(tmp_path, make_run, read_page):
    photos = tmp_path / "photos"
    first, second = (make_run(tmp_path / name, photos=photos) for name in ("first", "second"))
    write_report(first)
    shutil.rmtree(photos)
    page = read_page(write_report(second))
    assert page.of_class("missing") == []
    files = [run.directory / "report-thumbnails" for run in (first, second)]
    inodes = [{file.stat().st_ino for file in folder.rglob("*.webp")} for folder in files]
    assert inodes[0] == inodes[1] != set()


def test_links_among_the_thumbnails_of_another_run_are_not_followed(tmp_path, make_run, read_page):
    photos = tmp_path / "photos"
    first, second = (make_run(tmp_path / name, photos=photos) for name in ("first", "second"))
    write_report(first)
    (tmp_path / "secret").write_text("secret")
    for file in (first.directory / "report-thumbnails").rglob("*.webp"):
        file.unlink()
        file.symlink_to(tmp_path / "secret")
    write_report(second)
    assert b64encode(b"secret").decode() not in second.report.read_text()
    assert read_page(second.report).of_class("missing") == []


def thumbnails_of(run):
    return sorted((run.directory / "report-thumbnails").glob("*/*.webp"))


def test_a_link_in_the_place_of_a_thumbnail_leaks_nothing(small_run, tmp_path):
    write_report(small_run)
    secret = tmp_path / "id_rsa"
    secret.write_bytes(b"-----BEGIN PRIVATE KEY-----")
    for path in thumbnails_of(small_run):
        path.unlink()
        path.symlink_to(secret)
    page = write_report(small_run).read_text(encoding="utf-8")
    assert b64encode(secret.read_bytes()).decode()[:20] not in page
    assert page.count("data:image/webp;base64,UklGR") > 24
    assert not any(path.is_symlink() for path in thumbnails_of(small_run))
    assert secret.read_bytes() == b"-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"secret text",
        b"RIFF\x10\x00\x00\x00WEBPVP8 \x04\x00\x00\x00text",
        "with text at the end",
        "far too large",
    ],
)
def test_thumbnails_that_are_none_are_made_again(small_run, content):
    first = write_report(small_run).read_bytes()
    large = BytesIO()
    Image.new("RGB", (3000, 2000)).save(large, "WEBP")
    for path in thumbnails_of(small_run):
        if content == "with text at the end":
            path.write_bytes(path.read_bytes() + b"text")
        elif content == "far too large":
            path.write_bytes(large.getvalue())
        else:
            path.write_bytes(content)
    assert write_report(small_run).read_bytes() == first


@pytest.mark.parametrize("name", ["report-thumbnails", "report-thumbnails/320"])
def test_thumbnails_are_not_written_through_a_link(small_run, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (small_run.directory / name).parent.mkdir(exist_ok=True)
    (small_run.directory / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=rf"{name} is a link, .* Remove the link"):
        write_report(small_run)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not small_run.report.exists()


def test_links_of_other_runs_are_not_followed(make_run, tmp_path):
    first, second = make_run(tmp_path / "a" / "run"), make_run(tmp_path / "a" / "other")
    write_report(first)
    (name, *_) = (path.name for path in thumbnails_of(first))
    for path in thumbnails_of(first):
        path.unlink()
        path.symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret")
    write_report(second)
    made = second.directory / "report-thumbnails" / "320" / name
    assert made.is_file()
    assert not made.is_symlink()


def test_what_a_killed_report_left_is_removed(small_run):
    write_report(small_run)
    folder = thumbnails_of(small_run)[0].parent
    (folder / f"{'0' * 32}.new").write_bytes(b"half a thumbnail")
    (folder / "mine.txt").write_text("mine")
    write_report(small_run)
    assert list(folder.glob("*.new")) == []
    assert (folder / "mine.txt").exists()
