"""The export against FiftyOne's documented format FiftyOneImageClassificationDataset."""

from __future__ import annotations

import json
import os
import shlex

import pytest

from nouncut.errors import OutputError
from nouncut.exports.fiftyone import export_fiftyone


def read(result):
    data = json.loads((result.path / "data.json").read_text(encoding="utf-8"))
    labels = json.loads((result.path / "labels.json").read_text(encoding="utf-8"))
    return data, labels


def test_the_documented_format(shared_run, tmp_path):
    result = export_fiftyone(shared_run, tmp_path / "dataset")
    data, labels = read(result)
    assert set(labels) == {"classes", "labels"}
    assert labels["classes"] == shared_run.names
    assert data.keys() == labels["labels"].keys()
    assert len(data) == result.n_written
    # Endings of keys are cut off, and samples are sorted by key.
    assert all(os.path.splitext(key)[1] == "" for key in data)
    assert list(data) == sorted(data)
    for label in labels["labels"].values():
        assert set(label) == {"label", "confidence", "attributes"}
        assert isinstance(label["label"], int)
        assert 0 <= label["confidence"] <= 1
        assert set(label["attributes"]) == {
            "cluster",
            "second_label",
            "second_confidence",
            "outlier",
        }


def test_every_image_has_its_label(shared_run, tmp_path):
    data, labels = read(export_fiftyone(shared_run, tmp_path / "dataset"))
    rows = dict(zip(shared_run.paths(), shared_run.assignments.to_pylist(), strict=True))
    by_path = {os.fspath(path): row for path, row in rows.items()}
    for key, path in data.items():
        assert os.path.isabs(path)
        assert os.path.isfile(path)
        label, row = labels["labels"][key], by_path[path]
        assert labels["classes"][label["label"]] == row["name"]
        assert label["confidence"] == pytest.approx(row["confidence"], rel=1e-7)
        assert label["attributes"]["cluster"] == row["cluster"]
        assert label["attributes"]["outlier"] is row["outlier"]
        assert label["attributes"]["second_label"] == row["second_name"]


def test_names_that_are_no_text_are_left_out_and_told(shared_run, tmp_path):
    result = export_fiftyone(shared_run, tmp_path / "dataset")
    undecodable = [path for path in shared_run.paths() if "\udce9" in path.name]
    assert len(result.problems) == len(undecodable)
    assert result.n_written == len(shared_run.labels) - len(undecodable)


def test_no_second_choice_and_no_images(write_run, tmp_path):
    run = write_run([tmp_path / "x.jpg"], [0], ["cat"])
    _, labels = read(export_fiftyone(run, tmp_path / "one"))
    assert labels["labels"]["00000000"]["attributes"] == {"cluster": 0, "outlier": False}
    empty = write_run([], [], [])
    assert read(export_fiftyone(empty, tmp_path / "none")) == ({}, {"classes": [], "labels": {}})


def test_the_hint_is_a_command(shared_run, tmp_path):
    result = export_fiftyone(shared_run, tmp_path / "my data'set")
    words = shlex.split(result.hint)
    assert words[:4] == ["fiftyone", "app", "view", "--dataset-dir"]
    assert words[4] == str(tmp_path / "my data'set")
    assert "data_path=data.json" in words


@pytest.mark.parametrize("name", ["data.json", "labels.json"])
def test_nothing_is_overwritten_unless_asked(shared_run, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(OutputError, match=name):
        export_fiftyone(shared_run, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert len(list(tmp_path.glob("*.json"))) == 1
    export_fiftyone(shared_run, tmp_path, overwrite=True)
    assert (tmp_path / name).read_text() != "mine"
