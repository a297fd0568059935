"""``nouncut cluster``: the first run, the second, and what changes in between."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from PIL import Image

from nouncut.runs.run import open_run


@pytest.fixture
def cluster(nouncut, tiny_clip, words):
    """Return the command with what all runs here share."""

    def run(*arguments, **options):
        return nouncut(
            "cluster", *arguments, "--model", tiny_clip, "--vocabulary", words, **options
        )

    return run


def clustered(directory):
    run = open_run(directory)
    return {path.name: int(label) for path, label in zip(run.paths(), run.labels, strict=True)}


def state_of(directory):
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in directory.rglob("*")
        if path.is_file() and path.name != "run.lock"
    }


def test_the_first_run_the_second_and_new_images(cluster, draw, tmp_path):
    # No other test draws these.
    draw(tmp_path / "photos", range(500, 520))
    first = cluster("photos", "-k", 4)
    directory = tmp_path / "nouncut-runs" / "photos"
    run = open_run(directory)
    assert run.manifest["n_encoded"] == run.manifest["n_images"] == 20
    assert run.manifest["settings"]["n_clusters"] == 4
    assert run.report.stat().st_size > 1000
    for row in run.clusters.to_pylist():
        assert f"{row['name']} " in first.out
        assert f" {row['size']} " in first.out
    assert f"Report: {run.report}" in first.out
    assert "Nothing is new" not in first.err

    labels, state = clustered(directory), state_of(directory)
    second = cluster("photos", "-k", 4, "--json")
    assert second.json["n_encoded"] == 0
    assert clustered(directory) == labels
    assert state_of(directory) == state
    assert "Nothing is new: this is the run of" in cluster("photos", "-k", 4).err

    draw(tmp_path / "photos", range(520, 523))
    third = cluster("photos", "-k", 4, "--json").json
    assert (third["n_encoded"], third["n_images"]) == (3, 23)
    assert set(clustered(directory)) == {f"{number}.png" for number in range(500, 523)}


def test_files_that_are_no_images_are_listed_and_skipped(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(8))
    whole = (tmp_path / "photos" / "0.png").read_bytes()
    (tmp_path / "photos" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "photos" / "empty.jpg").touch()
    (tmp_path / "photos" / "notes.doc").write_text("not a picture")
    ended = cluster("photos", "-k", 2)
    assert "11 files found: 8 images, 3 skipped (1 " in ended.out
    skipped = {file.path.name: file.reason for file in open_run(next_run(tmp_path)).skipped}
    assert set(skipped) == {"cut.png", "empty.jpg", "notes.doc"}
    for name, reason in skipped.items():
        assert f"{tmp_path / 'photos' / name}: {reason}" in ended.err
    found = cluster("photos", "-k", 2, "--json").json
    assert (found["n_images"], found["n_skipped"]) == (8, 3)
    assert {(file["reason"]) for file in found["skipped"]} == set(skipped.values())


def next_run(folder, name="photos"):
    return folder / "nouncut-runs" / name


def test_the_number_of_clusters_is_found_with_runners_up(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(24))
    ended = cluster("photos")
    count = open_run(next_run(tmp_path)).manifest["cluster_count"]
    assert count["n_clusters"] == count["candidates"][0][0]
    assert len(count["candidates"]) > 1
    assert f"24 images in {count['n_clusters']} groups" in ended.out
    assert f"confidence {count['confidence']:.2f}" in ended.out
    assert cluster("photos", "-k", "auto", "--json").json["cluster_count"] == count


@pytest.mark.parametrize("n_clusters", [1, 5])
def test_the_number_of_clusters_is_kept_to(cluster, draw, tmp_path, n_clusters):
    draw(tmp_path / "photos", range(12))
    found = cluster("photos", "-k", n_clusters, "--json").json
    assert len(found["clusters"]) == found["n_clusters"] == n_clusters
    assert sum(one["size"] for one in found["clusters"]) == 12
    assert found["cluster_count"] is None


def test_quiet_says_nothing_and_json_is_all_there_is(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(6))
    (tmp_path / "photos" / "empty.jpg").touch()
    quiet = cluster("photos", "-k", 2, "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    both = cluster("photos", "-k", 3, "--quiet", "--json")
    assert both.err == ""
    assert json.loads(both.out)["n_clusters"] == 3


def test_a_run_of_other_settings_is_replaced_only_on_demand(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(6))
    cluster("photos", "-k", 2, "-o", "run")
    refused = cluster("photos", "-k", 3, "-o", "run", code=5)
    assert "--replace" in refused.err
    assert open_run(tmp_path / "run").manifest["n_clusters"] == 2
    cluster("photos", "-k", 3, "-o", "run", "--replace")
    assert open_run(tmp_path / "run").manifest["n_clusters"] == 3
    # Without --output, every question has a directory of its own.
    cluster("photos", "-k", 2)
    cluster("photos", "-k", 3)
    assert {p.name for p in (tmp_path / "nouncut-runs").iterdir()} == {"photos", "photos-2"}


def test_a_folder_with_things_of_the_users_is_not_written_to(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(6))
    assert "photos" in cluster("photos", "-k", 2, "-o", "photos", code=5).err
    assert len(list((tmp_path / "photos").iterdir())) == 6


def test_a_run_in_the_folder_it_is_made_from_is_not_its_own_input(cluster, draw, tmp_path):
    photos = tmp_path / "photos"
    draw(photos, range(8))
    first = cluster(".", "-k", 2, "--json", cwd=photos).json
    assert list(photos.glob("nouncut-runs/photos/report-thumbnails/*"))
    again = cluster(".", "-k", 2, "--json", cwd=photos).json
    other = cluster(tmp_path, "-k", 3, "--json", cwd=photos).json
    assert [one["n_images"] for one in (first, again, other)] == [8, 8, 8]
    assert [one["n_skipped"] for one in (first, again)] == [0, 0]
    assert first["directory"] == again["directory"] == str(photos / "nouncut-runs" / "photos")
    refused = cluster(first["directory"], cwd=tmp_path, code=3)
    assert "a run of nouncut" in refused.err


def test_relative_paths_patterns_lists_and_spaces(cluster, draw, tmp_path):
    photos = tmp_path / "my holiday, 2024"
    draw(photos / "sea", range(6))
    colours = ("red", "blue", "navy", "maroon")
    for colour in colours:
        Image.new("RGB", (20, 20), colour).save(photos / "sea" / f"{colour}.jpg")
    jpegs = {f"{colour}.jpg" for colour in colours}
    (photos / "some.txt").write_text("# a list\nsea/0.png\nsea/1.png\nsea/gone.png\n\nsea/*.jpg\n")

    def seen(*paths, cwd):
        found = cluster(*paths, "-k", 2, "--json", cwd=cwd).json
        rows = pq.read_table(f"{found['directory']}/assignments.parquet")["path"].to_pylist()
        assert all(row.startswith(f"{photos}/") for row in rows)
        return {row.rsplit("/", 1)[1] for row in rows}, found

    everything = {f"{number}.png" for number in range(6)} | jpegs
    assert seen("my holiday, 2024", cwd=tmp_path)[0] == everything
    assert seen("../sea", cwd=photos / "sea")[0] == everything
    assert seen("sea/*.jpg", cwd=photos)[0] == jpegs
    assert seen("sea/red.jpg", "sea/*.png", cwd=photos)[0] == everything - jpegs | {"red.jpg"}
    listed, found = seen("some.txt", cwd=photos)
    assert listed == {"0.png", "1.png"} | jpegs
    assert [file["reason"] for file in found["skipped"]] == ["line 4 of some.txt: does not exist"]


def test_the_cold_command_makes_the_same_run(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(12))
    cluster("photos", "-k", 3, "-o", "warm")
    cluster("photos", "-k", 3, "-o", "cold", cold=True)
    assert clustered(tmp_path / "cold") == clustered(tmp_path / "warm")
    assert open_run(tmp_path / "cold").names == open_run(tmp_path / "warm").names
