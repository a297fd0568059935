"""``nouncut update``: a folder that has grown."""

from __future__ import annotations

import re
import shutil

import pytest

from nouncut.runs.run import open_run


@pytest.fixture
def grown(nouncut, draw, tiny_clip, words, tmp_path):
    """Return the command with a run of 16 pictures in 4 groups."""
    draw(tmp_path / "photos", range(600, 616))
    run = ("cluster", "photos", "-k", 4, "--vocabulary", words, "--output", "run")
    nouncut(*run, "--model", tiny_clip, "--compare", "looks")
    return nouncut


def test_an_update_says_what_changed(grown, draw, tmp_path):
    assert grown("update", "run").out == "Nothing is new.\n"
    grown("edit", "run", "rename", 2, "mine", "--yes")
    draw(tmp_path / "photos", range(616, 620))
    (tmp_path / "photos" / "600.png").unlink()
    dry = grown("update", "run", "--dry-run").out
    assert dry.startswith("4 images are new, 1 image is gone.\n")
    assert dry.endswith("Nothing was written.\n")
    assert len(open_run(tmp_path / "run").labels) == 16
    ended = grown("update", "run")
    said = dry.removesuffix("Nothing was written.\n")
    assert ended.out.startswith(said)
    assert ended.out.endswith("19 images in 4 groups.\nReport: run/report.html\n")
    assert "`" not in ended.out
    assert open_run(tmp_path / "run").names_by_cluster[2] == "mine"
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
    assert grown("update", "run", "--json").json["changes"]["n_new"] == 0


def test_json_has_all_changes(grown, draw, tmp_path):
    draw(tmp_path / "more", range(700, 705))
    found = grown("update", "run", "more", "--json").json
    assert (found["n_images"], found["n_clusters"], found["dry_run"]) == (21, 4, False)
    changes = found["changes"]
    assert (changes["n_new"], changes["n_moved"], changes["reclustered"]) == (5, 0, False)
    assert sum(one["after"] - one["before"] for one in changes["groups"]) == 5
    assert open_run(tmp_path / "run").manifest["changes"] == changes
    assert grown("update", "run", "--quiet").out == ""


def test_all_can_be_clustered_again(grown, draw, tmp_path):
    draw(tmp_path / "photos", range(616, 618))
    grown("update", "run")
    before = open_run(tmp_path / "run").names_by_cluster
    ended = grown("update", "run", "--recluster", "--json")
    assert ended.json["changes"]["reclustered"]
    assert open_run(tmp_path / "run").names_by_cluster.keys() == before.keys()
    assert grown("update", "run", "--recluster").out == "Nothing is new.\n"


def test_the_cluster_command_says_what_changed(grown, draw, tiny_clip, words, tmp_path):
    draw(tmp_path / "photos", range(616, 618))
    command = ("cluster", "photos", "-k", 4, "--vocabulary", words, "--output", "run")
    command += ("--model", tiny_clip, "--compare", "looks")
    ended = grown(*command)
    assert "2 images are new." in ended.err
    assert re.search(r'More images: ".*" \+', ended.err)
    draw(tmp_path / "photos", range(618, 619))
    assert grown(*command, "--json").json["changes"]["n_new"] == 1


def test_a_missing_folder_is_no_reason_to_forget_its_images(grown, tmp_path):
    shutil.move(tmp_path / "photos", tmp_path / "elsewhere")
    ended = grown("update", "run", code=3)
    assert "drive" in ended.err
    (tmp_path / "photos").mkdir()
    ended = grown("update", "run", code=3)
    assert "No images found" in ended.err
    moved = grown("update", "run", "elsewhere", "--allow-missing")
    assert moved.out.startswith("16 images were renamed.\n")
    assert len(open_run(tmp_path / "run").labels) == 16
    grown("update", "no-run", code=3)


def test_an_update_with_nothing_new_loads_no_model(grown):
    ended = grown("update", "run", cold=True, env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.err.splitlines()}
    assert "nouncut.runs.update" in imported
    assert not imported & {"scipy", "sklearn", "torch", "transformers", "onnxruntime"}
