"""``nouncut search`` and several numbers of groups, through the installed command."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from nouncut.cli.search import _common_folder
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.run import open_run


def test_search_by_text(nouncut, finished, tmp_path):
    ended = nouncut("search", finished, "a red door", "-n", 5)
    assert ended.out.count(".png") == 5
    assert ended.out.startswith(f"In {finished.parent / 'photos'}/:")
    found = nouncut("search", finished, "a red door", "-n", 5, "--json").json
    assert [f"{one['score']:.2f}" for one in found] == [
        line.split()[0] for line in ended.out.splitlines() if ".png" in line
    ]
    place = tmp_path / "found.csv"
    shown = nouncut("search", finished, "a red door", "-n", 30, "-o", place)
    assert f"Table: {place}" in shown.out
    with place.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert [row["path"] for row in rows[:5]] == [one["path"] for one in found]
    assert "exists" in nouncut("search", finished, "door", "-o", place, code=5).err


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["/photos/a/1.jpg", "/photos/b/2.jpg"], "/photos/"),
        (["/photos/1.jpg"], "/photos/"),
        (["/1.jpg", "/photos/2.jpg"], ""),
        (["row 0", "row 1"], ""),
        (["row 0", "/photos/2.jpg"], ""),
        (["s3://bucket/1.jpg", "s3://bucket/2.jpg"], ""),
        ([], ""),
    ],
)
def test_the_folder_is_said_once(paths, folder):
    assert _common_folder(paths) == folder


def test_search_by_example(nouncut, finished, draw, tmp_path):
    (path,) = draw(tmp_path / "new", range(100, 101))
    by_file = nouncut("search", finished, "--like", path, "-n", 3, "--json").json
    assert len(by_file) == 3
    by_row = nouncut("search", finished, "--like", 4, "-n", 3, "--json").json
    by_end = nouncut("search", finished, "--like", "photos/12.png", "-n", 3, "--json").json
    rows = open_run(finished).images["path"].to_pylist()
    assert rows[4] not in [one["path"] for one in by_row]
    assert "12.png" not in {one["path"].rsplit("/")[-1] for one in by_end}
    assert "not an image" in nouncut("search", finished, "--like", "none.png", code=3).err


def test_duplicates(nouncut, tiny_clip, words, draw, tmp_path):
    paths = draw(tmp_path / "photos", range(8))
    (tmp_path / "photos" / "again.png").write_bytes(paths[3].read_bytes())
    options = ("--model", tiny_clip, "--vocabulary", words, "--compare", "looks")
    nouncut("cluster", "photos", "-k", 2, *options, "-o", "run")
    ended = nouncut("search", "run", "--duplicates", "--threshold", 1)
    assert "2 images in 1 group of duplicates." in ended.out
    assert ended.out.count("same file") == 2
    found = nouncut("search", "run", "--duplicates", "--threshold", 1, "--json").json
    assert {one["path"].rsplit("/")[-1] for one in found} == {"3.png", "again.png"}


def test_one_way_to_search_is_asked_for(nouncut, finished):
    for arguments in ((), ("dog", "--duplicates"), ("dog", "--like", 3)):
        assert "Pass one of" in nouncut("search", finished, *arguments, code=2).err
    assert "--threshold" in nouncut("search", finished, "dog", "--threshold", 0.9, code=2).err


def test_a_run_without_a_model_has_no_text_search(nouncut, tmp_path):
    np.save(tmp_path / "clip.npy", make_clip_like(90, 3, random_state=0).features)
    nouncut("cluster", "clip.npy", "-k", "3", "-o", "run")
    ended = nouncut("search", "run", "dog", code=3)
    assert "without a model that reads texts" in ended.err
    assert "--model" in ended.err
    assert len(nouncut("search", "run", "--like", 0, "--json").json) == 20


def test_several_numbers_of_groups_at_once(nouncut, tmp_path):
    np.save(tmp_path / "clip.npy", make_clip_like(240, 8, random_state=0).features)
    nouncut("cluster", "clip.npy", "-k", "2,8,4", "-o", "run")
    run = open_run(tmp_path / "run")
    assert run.manifest["n_clusters"] == 8
    assert [len(set(level)) for level in run.manifest["tree"]["levels"]] == [2, 4]
    assert len(run.tree.children) == 2
    nouncut("cluster", "clip.npy", "-k", 8, "--levels", 3, "-o", "other")
    assert len(open_run(tmp_path / "other").tree.children) == 3
    assert "--levels" in nouncut("cluster", "clip.npy", "-k", 3, "--levels", 5, code=2).err
    assert "-k" in nouncut("cluster", "clip.npy", "-k", "2,many", code=2).err
    json.dumps(run.tree.to_json())
