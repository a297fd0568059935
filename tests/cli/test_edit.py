"""Groups mended from the command line, and the same groups everywhere else."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.run import open_run

N_IMAGES = 24


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def groups(run):
    return open_run(run).names_by_cluster


def names_by_path(directory):
    run = open_run(directory)
    return dict(zip(map(str, run.paths()), run.assignments["name"].to_pylist(), strict=True))


def test_a_whole_story(nouncut, run):
    sizes = {row["cluster"]: row["size"] for row in open_run(run).clusters.to_pylist()}
    said = nouncut("edit", run, "merge", 1, 3).out
    assert f"Touches {sizes[3]} image" in said
    assert "Done." in said
    assert "nouncut edit" not in nouncut("edit", run, "rename", 1, "red cars").err
    paths = open_run(run).paths()
    nouncut("edit", run, "move", paths[0], paths[1].name, "--to", "two of them")
    nouncut("edit", run, "set-aside", paths[2], "--yes")
    nouncut("edit", run, "split", "red cars", "--parts", 2)
    opened = open_run(run)
    assert {1: "red cars", 4: "two of them", 5: "red cars 2"}.items() <= groups(run).items()
    assert opened.labels[[0, 1, 2]].tolist() == [4, 4, -1]
    for expected in ("undo: split", "undo: set aside 1 image"):
        assert expected in nouncut("edit", run, "undo").out.lower()
    assert "redo: set aside" in nouncut("edit", run, "redo").out.lower()
    history = nouncut("edit", run, "history", "--json").json
    assert [one["is_undone"] for one in history] == [False, False, False, False, True]
    shown = nouncut("edit", run, "history").out
    assert "set aside 1 image" in shown
    assert shown.count("undone") == 1
    for _ in range(4):
        nouncut("edit", run, "undo")
    assert "nothing to undo" in nouncut("edit", run, "undo", code=3).err


def test_groups_that_may_be_one_are_suggested(nouncut, tmp_path):
    data = make_clip_like(240, 3, separation=0.45, random_state=0)
    np.save(tmp_path / "clip.npy", data.features)
    run = tmp_path / "run"
    nouncut("cluster", tmp_path / "clip.npy", "-k", 5, "-o", run)
    first, *rest = nouncut("edit", run, "suggest", "--json").json
    assert set(first) == {"clusters", "names", "score", "reason", "pairs"}
    shown = nouncut("edit", run, "suggest")
    a, b = first["clusters"]
    assert f"{a} {b}" in shown.out
    assert f"merge {a} {b}" in shown.err
    assert "Touches 0 images" in nouncut("edit", run, "apart", a, b).out
    assert nouncut("edit", run, "suggest", "--json").json == rest
    assert "apart already" in nouncut("edit", run, "apart", b, a, code=3).err
    nouncut("edit", run, "merge", 0, 1, 2, 3, 4)
    assert "No two groups" in nouncut("edit", run, "suggest").out


def test_a_preview_changes_nothing(nouncut, run):
    before = {path.name for path in run.iterdir()}
    for verb in (("merge", 0, 1), ("split", 0, "--parts", 2), ("rename", 0, "x")):
        said = nouncut("edit", run, *verb, "--dry-run").out
        assert re.search(r"Touches [\d,]+ images?\.\nNothing was changed", said)
    assert {path.name for path in run.iterdir()} == before
    assert open_run(run).edits == ()


@pytest.mark.parametrize(
    ("verb", "code", "said"),
    [
        (("merge", 0, 99), 3, "There is no group 99. The groups are 0, 1, 2, 3."),
        (("merge", 0), 3, "at least two"),
        (("merge", "nothing", 0), 3, 'no group "nothing"'),
        (("split", 0, "--parts", "many"), 2, "--parts must be"),
        (("split", 0, "--parts", 1), 2, "--parts must be at least 2"),
        (("move", "gone.jpg", "--to", 0), 3, "gone.jpg is not an image of this run"),
        (("rename", 0, " "), 2, "must not be empty"),
        (("redo",), 3, "nothing to redo"),
    ],
)
def test_what_cannot_be_done_is_said(nouncut, run, verb, code, said):
    assert said in nouncut("edit", run, *verb, code=code).err
    assert not (run / "edits.jsonl").exists()


def test_a_name_that_is_taken_offers_a_merge(nouncut, run):
    names = groups(run)
    said = nouncut("edit", run, "rename", 2, names[1].upper(), code=3).err
    assert "is the name of group 1 already" in said
    assert "merge groups 1 and 2" in said
    (run.parent / "names.json").write_text(
        json.dumps({"format": 1, "names": {"0": "icons", "3": "icons"}})
    )
    said = nouncut("report", run, "--names", run.parent / "names.json", code=3).err
    assert "merge groups 0 and 3" in said


@pytest.mark.parametrize(("answer", "is_done"), [("n", False), ("y", True)])
def test_a_person_is_asked(nouncut, run, answer, is_done):
    ours, theirs = pty.openpty()
    command = Path(sys.executable).with_name("nouncut")
    process = subprocess.Popen(
        [command, "edit", run, "merge", "0", "1"], stdin=theirs, stdout=subprocess.PIPE
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert b"Touches" in out
    assert (len(open_run(run).edits) == 1) == is_done


def test_edited_groups_are_the_same_everywhere(nouncut, run, tmp_path):
    nouncut("edit", run, "merge", 0, 2)
    nouncut("edit", run, "rename", 0, "Mine")
    first = open_run(run).paths()[0]
    nouncut("edit", run, "set-aside", first)
    expected = names_by_path(run)
    assert set(expected.values()) == {*groups(run).values(), None}
    assert len(groups(run)) == 3

    nouncut("export", run, "--to", "csv", "-o", tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["path"]: row["name"] or None for row in rows} == expected

    nouncut("export", run, "--to", "tree", "-o", tmp_path / "tree")
    links = [path for path in (tmp_path / "tree").rglob("*") if path.is_symlink()]
    placed = {os.path.realpath(link): link.parent.name for link in links}
    assert placed == {path: name or "set aside" for path, name in expected.items()}

    nouncut("export", run, "--to", "xmp", "-o", tmp_path / "xmp")
    written = (tmp_path / "xmp").rglob("*.xmp")
    sidecars = {path.name.removesuffix(".xmp"): path.read_text() for path in written}
    assert set(sidecars) == {Path(path).name for path, name in expected.items() if name}
    for path, name in expected.items():
        assert name is None or f"<rdf:li>{name}</rdf:li>" in sidecars[Path(path).name]

    nouncut("export", run, "--to", "fiftyone", "-o", tmp_path / "fiftyone")
    samples = json.loads((tmp_path / "fiftyone" / "samples.json").read_text())["samples"]
    found = {one["filepath"]: one["nouncut"] and one["nouncut"]["label"] for one in samples}
    assert found == expected
    nouncut("export", run, "--to", "embedding-atlas", "-o", tmp_path / "atlas.parquet")

    nouncut("report", run)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r'data-cluster="(\d+)"', page)) == {str(n) for n in groups(run)}
    assert ">Mine<" in page
    assert "1 set aside" in page

    predicted = nouncut("predict", run, first.parent, "--json").json["images"]
    assert {row["name"] for row in predicted} <= set(groups(run).values())
    assert {row["cluster"] for row in predicted} <= set(groups(run))
    assert "set aside" in nouncut("explain", run, first).out


def test_edits_survive_a_photo_more(nouncut, draw, tiny_clip, words, tmp_path):
    draw(tmp_path / "photos", range(24))
    command = ("cluster", "photos", "-k", 4, "--vocabulary", words, "--model", tiny_clip)
    nouncut(*command, "-o", "run")
    nouncut("edit", "run", "merge", 0, 1)
    nouncut("edit", "run", "rename", 0, "Both")
    nouncut("edit", "run", "set-aside", "5.png")
    nouncut("edit", "run", "move", "6.png", "7.png", "--to", "Lake")
    before = names_by_path(tmp_path / "run")
    draw(tmp_path / "photos", range(24, 25))
    said = nouncut(*command, "-o", "run").err
    assert "2 names that you gave and 3 other edits were kept" in said
    after = names_by_path(tmp_path / "run")
    assert {path: after[path] for path in before} == before
    (tmp_path / "photos" / "5.png").unlink()
    last = nouncut(*command, "-o", "run")
    assert "no longer suit the groups were dropped: set aside 1 image." in last.err
    assert "set aside" not in last.out
