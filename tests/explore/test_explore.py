"""The explorer's addresses, on a real server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from nouncut.explore.pictures import SIDES
from nouncut.report.script_data import image_columns, map_columns
from nouncut.runs.edit_log import EDITS
from nouncut.runs.run import open_run

N_IMAGES = 24


@pytest.fixture(autouse=True)
def without_edits(served):
    """Undo what tests of the same module did."""
    yield
    (served.run.directory / EDITS).unlink(missing_ok=True)


def column_bytes(columns):
    return b"".join(column.tobytes() for column in columns)


def test_the_run_is_described(served, client):
    run, found = served.run, client.get("/api/run").json
    assert found["nImages"] == N_IMAGES == sum(group["size"] for group in found["groups"])
    assert found["names"] == [*run.names, "Set aside"]
    assert found["setAside"] == 3
    assert [group["number"] for group in found["groups"]] == [0, 1, 2]
    assert found["groups"][0]["words"] == ["<u>puppy</u>", "hound"]
    assert found["tree"] == run.tree.to_json()
    assert (found["history"], found["undo"], found["redo"]) == ([], None, None)
    assert (found["hasImages"], found["hasMap"], found["hasGraph"]) == (True, True, True)
    assert found["canReadTexts"] is False
    assert {export["kind"] for export in found["exports"]} >= {"csv", "tree", "xmp"}


def test_columns_are_those_of_the_tables(served, client):
    client.edit(verb="move", rows=[0, 1], to=2)
    client.edit(verb="set aside", rows=[5])
    run = open_run(served.run.directory)
    by_hand = np.isin(np.arange(N_IMAGES), [0, 1, 5]).astype(np.uint8)
    labels = client.get("/api/labels")
    assert labels.body == column_bytes([*image_columns(run).values(), by_hand])
    assert len(labels.body) == 8 * N_IMAGES
    assert np.frombuffer(labels.body, "<u2")[[0, 1, 5]].tolist() == [2, 2, 3]
    assert client.get("/api/labels", If_None_Match=labels.headers["etag"]).status == 304
    client.edit(verb="undo")
    assert client.get("/api/labels", If_None_Match=labels.headers["etag"]).status == 200
    positions = client.get("/api/positions").body
    assert positions == column_bytes(map_columns(run).values())


def test_paths_are_below_the_folder(served, client):
    found = client.get("/api/paths?start=20").json["paths"]
    assert found == [f"{row}.png" for row in range(20, N_IMAGES)]
    folder = client.get("/api/run").json["folder"]
    assert folder == str(served.run.paths()[0].parent)


def test_search_finds_files_and_groups_without_a_model(client):
    found = client.get("/api/search?text=HOUND").json
    assert (found["groups"], found["rows"], found["files"]) == ([0], [], [])
    assert "without a model" in found["problem"]
    assert client.get("/api/search?text=23.P").json["files"] == [23]
    assert client.get("/api/search?text=").json["problem"] is None


def test_images_like_one_and_why_it_is_there(served, client):
    found = client.get("/api/like?row=13&n=5").json
    assert len(found["rows"]) == 5
    assert set(served.run.labels[found["rows"]]) == {1}
    (about,) = client.get("/api/explain?row=13").json["images"].values()
    assert set(served.run.labels[about[0]]) == {1}
    assert client.get("/api/duplicates").json == {"groups": []}
    assert client.get("/api/suggestions").json == {"suggestions": []}


def test_a_preview_changes_nothing_and_says_what_the_edit_says(served, client):
    verbs = (
        {"verb": "merge", "groups": [0, 1]},
        {"verb": "split", "group": 0, "parts": 2, "names": [None, "other half"]},
        {"verb": "move", "rows": [0, 1, 2], "to": "new <b>"},
        {"verb": "move", "rows": [3], "to": 2},
        {"verb": "rename", "group": 2, "name": "</script>"},
        {"verb": "set aside", "rows": [7]},
        {"verb": "apart", "groups": [0, 2]},
        {"verb": "undo"},
        {"verb": "redo"},
    )
    for fields in verbs:
        before = client.get("/api/run").json
        preview = client.edit(**fields, preview=True)
        assert preview.status == 200, preview.json
        assert client.get("/api/run").json == before
        done = client.edit(**fields)
        same = preview.json | {"version": done.json["version"]}
        assert done.json == same
        assert done.json["version"] != before["version"]
        if "parts" in done.json:
            (rest, new), run = done.json["parts"], open_run(served.run.directory)
            assert new["name"] == "other half"
            labels = run.labels[rest["rows"]], run.labels[new["rows"]]
            assert [set(one) for one in labels] == [{0}, {3}]
    after = client.get("/api/run").json
    assert after["names"][4] == "new <b>"
    assert after["undo"].startswith("keep")
    assert [one["nImages"] for one in after["history"]][2:4] == [3, 1]
    assert open_run(served.run.directory).groups.apart == {frozenset({0, 2})}


@pytest.mark.parametrize(
    "fields",
    [
        {"verb": "merge", "groups": [0]},
        {"verb": "merge", "groups": [0, 99]},
        {"verb": "merge", "groups": "01"},
        {"verb": "merge"},
        {"verb": "apart", "groups": [0, 0]},
        {"verb": "split", "group": 0, "parts": 1},
        {"verb": "split", "group": 0, "parts": True},
        {"verb": "split", "group": [0]},
        {"verb": "split", "group": 0, "parts": 2, "names": [1, 2]},
        {"verb": "move", "rows": [0], "to": None},
        {"verb": "move", "rows": [0], "to": " "},
        {"verb": "move", "rows": [], "to": 1},
        {"verb": "move", "rows": [N_IMAGES], "to": 1},
        {"verb": "move", "rows": [-1], "to": 1},
        {"verb": "move", "rows": ["/etc/passwd"], "to": 1},
        {"verb": "move", "rows": [1.0], "to": 1},
        {"verb": "move", "rows": [2**70], "to": 1},
        {"verb": "rename", "group": 0, "name": ""},
        {"verb": "rename", "group": 0, "name": None},
        {"verb": "rename", "group": 0, "name": {"a": 1}},
        {"verb": "set aside", "rows": [True]},
        {"verb": "undo"},
        {"verb": "explode"},
        {"verb": ["undo"]},
        {},
    ],
)
def test_edits_that_make_no_sense_are_refused_in_words(served, client, fields):
    tried = client.edit(**fields, preview=True).json
    assert len(tried.get("problem") or tried["error"]) > 10
    found = client.edit(**fields, preview=False)
    assert found.status == 400
    assert len(found.json["error"]) > 10
    assert not (served.run.directory / EDITS).exists()


def test_edits_of_others_are_seen_and_not_overwritten(served, client):
    version = client.version
    open_run(served.run.directory).rename(1, "from elsewhere")
    rename = {"verb": "rename", "group": 0, "name": "mine", "version": version}
    for preview in (True, False):
        found = client.post("/api/edit", rename | {"preview": preview})
        assert found.status == 409
        assert "elsewhere" in found.json["error"]
    assert client.get("/api/run").json["names"][:2] == [served.run.names[0], "from elsewhere"]
    assert client.edit(verb="rename", group=0, name="mine").status == 200
    assert open_run(served.run.directory).names[:2] == ["mine", "from elsewhere"]


def test_a_damaged_log_is_told(served, client):
    client.edit(verb="rename", group=0, name="mine")
    log = served.run.directory / EDITS
    log.write_bytes(log.read_bytes().replace(b"mine", b"your"))
    found = client.get("/api/run")
    assert found.status == 400
    assert "damaged" in found.json["error"]


def test_a_run_that_is_written_anew_is_read_anew(serve, make_run, tmp_path):
    with serve(make_run(tmp_path / "run")) as served:
        before = served.client.get("/api/run").json
        served.client.edit(verb="merge", groups=[0, 1])
        make_run(tmp_path / "run", seed=1)
        after = served.client.get("/api/run").json
        assert after["id"] != before["id"]
        found = served.client.post("/api/edit", {"verb": "undo", "version": before["version"]})
        assert found.status == 409


@pytest.mark.parametrize("side", SIDES)
def test_thumbnails_are_made_once_and_kept(served, client, side):
    found = client.get(f"/thumbnails/{side}/23")
    assert found.headers["content-type"] == "image/webp"
    assert "private" in found.headers["cache-control"]
    with Image.open(BytesIO(found.body)) as image:
        assert (image.format, image.size) == ("WEBP", (40, 30))
    (kept,) = (served.run.directory / "report-thumbnails" / str(side)).glob(
        f"{served.run.images['hash'][23].as_py()}.webp"
    )
    assert kept.read_bytes() == found.body
    again = client.get(f"/thumbnails/{side}/23", If_None_Match=found.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    # What is no thumbnail is not shown.
    kept.write_bytes(b"<script>alert(1)</script>")
    assert client.get(f"/thumbnails/{side}/23").body == found.body


def test_thumbnails_without_a_place_to_keep_them(serve, make_run, tmp_path):
    run = make_run(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (run.directory / "report-thumbnails").symlink_to(tmp_path / "elsewhere")
    with serve(run) as served:
        assert served.client.get("/thumbnails/96/23").headers["content-type"] == "image/webp"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("suffix", "options", "media_type"),
    [
        ("png", {}, "image/png"),
        ("jpg", {"format": "JPEG"}, "image/jpeg"),
        ("gif", {}, "image/gif"),
        ("webp", {}, "image/webp"),
        # A browser cannot show these, and a suffix says nothing.
        ("tif", {}, "image/jpeg"),
        ("png", {"format": "BMP"}, "image/jpeg"),
    ],
)
def test_originals_are_shown_as_they_are_if_browsers_can(
    serve, make_run, tmp_path, suffix, options, media_type
):
    from nouncut.images.hashing import content_hash
    from nouncut.runs.tables import images_table
    from nouncut.runs.writer import RunContents, RunWriter

    run = make_run(tmp_path / "run")
    path = tmp_path / f"picture.{suffix}"
    Image.new("RGB", (3000, 100), "red").save(path, **options)
    paths = [path, *run.paths()[1:]]
    images = images_table(paths, hashes=[content_hash(one) for one in paths])
    contents = RunContents(run.manifest, run.assignments, run.clusters, images)
    with RunWriter(tmp_path / "other") as writer:
        other = writer.finish(contents)
    with serve(other) as served:
        found = served.client.get("/images/0")
    assert found.headers["content-type"] == media_type
    with Image.open(BytesIO(found.body)) as image:
        is_same = found.body == path.read_bytes()
        assert image.size == ((3000, 100) if is_same else (2048, 68))
    assert is_same == (suffix != "tif" and options.get("format") != "BMP")


@pytest.mark.parametrize("target", ["link", "content", "gone", "folder", "pipe"])
def test_only_what_was_clustered_is_shown(serve, make_run, tmp_path, target):
    """An image that became a link out of the folder, or another file, is not shown."""
    run = make_run(tmp_path / "run")
    path = run.paths()[23]
    secret = tmp_path / "secret.png"
    shutil.copy(run.paths()[20], secret)
    path.unlink()
    if target == "link":
        path.symlink_to(secret)
    elif target == "content":
        path.write_bytes(b"root:x:0:0")
    elif target == "folder":
        path.mkdir()
    elif target == "pipe":
        os.mkfifo(path)
    with serve(run) as served:
        for address in ("/images/23", "/thumbnails/96/23"):
            found = served.client.get(address)
            assert found.status == 404
            assert found.headers["content-type"] == "application/json"
            assert str(tmp_path) not in found.body.decode()
        path.unlink() if target in ("link", "content", "pipe") else None
    assert not (run.directory / "report-thumbnails" / "96").is_dir() or not list(
        (run.directory / "report-thumbnails" / "96").iterdir()
    )


def test_runs_of_features_have_no_pictures(serve, make_run, tmp_path):
    with serve(make_run(tmp_path / "run", source_kind="features")) as served:
        found = served.client.get("/api/run").json
        assert found["hasImages"] is False
        assert {one["kind"] for one in found["exports"]}.isdisjoint({"tree", "xmp", "fiftyone"})
        assert served.client.get("/images/0").status == 404
        assert served.client.get("/api/paths").json["paths"][0] == "row 0"
        assert served.client.edit(verb="merge", groups=[0, 1]).status == 200


def test_an_export_is_shown_before_it_is_written(served, client, tmp_path):
    place = tmp_path / "table.csv"
    wanted = {"kind": "csv", "to": str(place)}
    preview = client.post("/api/export", wanted | {"preview": True}).json
    assert (preview["nFiles"], preview["nImages"], preview["files"]) == (1, N_IMAGES, ["table.csv"])
    assert not place.exists()
    assert "24 written" in client.post("/api/export", wanted).json["text"]
    assert len(place.read_text().splitlines()) >= N_IMAGES
    again = client.post("/api/export", wanted)
    assert again.status == 400
    assert "exists already" in again.json["error"]
    for wrong in ({"kind": "exe"}, {"kind": "csv", "to": 3}, {"kind": "csv", "options": [1]}, {}):
        assert client.post("/api/export", wrong).status == 400
        assert client.post("/api/export", wrong | {"preview": True}).json.keys() == {"problem"}


def start(*arguments):
    command = [sys.executable, "-m", "nouncut", "explore", *map(str, arguments), "--no-browser"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def test_the_command_serves_until_it_is_interrupted(make_run, tmp_path):
    process = start(make_run(tmp_path / "run").directory)
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        # What the stream has read ahead is lost for `communicate`.
        assert "Nothing leaves this machine" in process.stdout.readline()
        jar = urllib.request.HTTPCookieProcessor()
        browser = urllib.request.build_opener(jar)
        with browser.open(address, timeout=60) as page:
            assert page.url == address.partition("?")[0]
            assert b"<html" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address, timeout=60)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.count("/?token=") == 1  # for whoever came second
    assert err == ""


def test_the_command_says_what_is_wrong(served, tmp_path):
    for arguments, code, said in (
        ([tmp_path], 3, "is not a run"),
        ([served.run.directory, "--port", served.port], 5, "Choose another --port"),
    ):
        process = start(*arguments)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, said in err) == (code, True)
