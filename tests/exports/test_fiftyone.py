"""The export against what FiftyOne 1.22 itself writes; scripts/check_fiftyone.py imports it."""

from __future__ import annotations

import json
import os
import re
import shlex
import zlib
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest

from nouncut.errors import OutputError
from nouncut.exports.registry import export_run

FILES = ["metadata.json", "samples.json", "brain/nouncut_map.json"]
FIELDS = {
    "nouncut": "EmbeddedDocumentField",
    "nouncut_second": "EmbeddedDocumentField",
    "nouncut_cluster": "IntField",
    "nouncut_tree": "ListField",
    "nouncut_outlier": "BooleanField",
    "nouncut_embedding": "VectorField",
}


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def unpacked(text):
    return np.load(BytesIO(zlib.decompress(b64decode(text))), allow_pickle=False)


@pytest.fixture
def dataset(shared_run, tmp_path):
    return export_run(shared_run, "fiftyone", tmp_path / "dataset").path


def test_fields_of_our_own_are_declared(shared_run, dataset):
    metadata = read(dataset, "metadata.json")
    fields = {field["name"]: field for field in metadata["sample_fields"]}
    kinds = {name: field["ftype"].rpartition(".")[2] for name, field in fields.items()}
    assert FIELDS.items() <= kinds.items()
    assert "ground_truth" not in fields
    assert fields["id"]["db_field"] == "_id"
    assert fields["nouncut"]["embedded_doc_type"] == "fiftyone.core.labels.Classification"
    assert metadata["default_classes"] == shared_run.names


def test_every_sample_has_the_values_of_its_image(shared_run, dataset):
    rows = {
        os.fspath(path): (number, row)
        for number, (path, row) in enumerate(
            zip(shared_run.paths(), shared_run.assignments.to_pylist(), strict=True)
        )
    }
    samples = read(dataset, "samples.json")["samples"]
    declared = {field["db_field"] for field in read(dataset, "metadata.json")["sample_fields"]}
    groups = shared_run.tree.paths()
    for sample in samples:
        assert set(sample) <= declared
        number, row = rows[sample["filepath"]]
        assert sample["nouncut"]["label"] == row["name"]
        assert sample["nouncut"]["confidence"] == pytest.approx(row["confidence"], rel=1e-6)
        assert sample["nouncut_second"]["label"] == row["second_name"]
        assert sample["nouncut_cluster"] == row["cluster"]
        assert sample["nouncut_tree"] == list(groups[row["cluster"]])
        assert sample["nouncut_outlier"] is row["outlier"]
        vector = unpacked(sample["nouncut_embedding"]["$binary"]["base64"])
        np.testing.assert_array_equal(vector, shared_run.array("features")[number])
        assert vector.dtype == np.float32


def test_the_map_has_a_point_for_every_sample(shared_run, dataset):
    method = read(dataset, "metadata.json")["brain_methods"]["nouncut_map"]
    assert method["config"]["type"] == "visualization"
    results = read(dataset, "brain/nouncut_map.json")
    samples = read(dataset, "samples.json")["samples"]
    ids = [sample["_id"]["$oid"] for sample in samples]
    assert unpacked(results["sample_ids"]).tolist() == ids
    paths = [os.fspath(path) for path in shared_run.paths()]
    places = [paths.index(sample["filepath"]) for sample in samples]
    np.testing.assert_allclose(unpacked(results["points"]), shared_run.map()[places])


def test_ids_are_distinct_and_stay_the_same(shared_run, dataset, tmp_path):
    text = (dataset / "samples.json").read_text(encoding="utf-8")
    ids = re.findall(r'"\$oid": "([0-9a-f]{24})"', text)
    assert len(set(ids)) == len(ids) == 3 * len(read(dataset, "samples.json")["samples"])
    part = export_run(shared_run, "fiftyone", tmp_path / "part", groups=[1]).path
    few = {sample["_id"]["$oid"] for sample in read(part, "samples.json")["samples"]}
    assert 0 < len(few) < len(ids)
    assert few < set(ids)
    points = read(part, "brain/nouncut_map.json")
    assert set(unpacked(points["sample_ids"]).tolist()) == few
    assert len(unpacked(points["points"])) == len(few)


def test_names_that_are_no_text_are_left_out_and_told(shared_run, tmp_path):
    result = export_run(shared_run, "fiftyone", tmp_path / "dataset")
    undecodable = [path for path in shared_run.paths() if "\udce9" in path.name]
    assert len(result.problems) == len(undecodable)
    assert result.n_written == len(shared_run.labels) - len(undecodable)
    assert len(read(result.path, "samples.json")["samples"]) == result.n_written


def test_a_run_without_second_choices_vectors_and_map(write_run, tmp_path):
    run = write_run([tmp_path / "x.jpg", tmp_path / "y.jpg"], [0, 0], ["cat"])
    run.set_aside(1)
    result = export_run(run, "fiftyone", tmp_path / "one")
    assert result.files == [result.path / "metadata.json", result.path / "samples.json"]
    first, aside = read(result.path, "samples.json")["samples"]
    assert (first["nouncut"]["label"], first["nouncut_second"]) == ("cat", None)
    assert (aside["nouncut"], aside["nouncut_cluster"], aside["nouncut_tree"]) == (None, None, None)
    metadata = read(result.path, "metadata.json")
    assert metadata["brain_methods"] == {}
    assert "nouncut_embedding" not in {field["name"] for field in metadata["sample_fields"]}


def test_the_hint_is_a_command(shared_run, tmp_path):
    result = export_run(shared_run, "fiftyone", tmp_path / "my data'set", preview=True)
    words = shlex.split(result.hint)
    assert words[:4] == ["fiftyone", "app", "view", "--dataset-dir"]
    assert words[4:] == [str(result.path), "--type", "fiftyone.types.FiftyOneDataset"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten_unless_asked(shared_run, tmp_path, name):
    (tmp_path / "brain").mkdir()
    (tmp_path / name).write_text("mine")
    with pytest.raises(OutputError, match=name):
        export_run(shared_run, "fiftyone", tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert len(list(tmp_path.rglob("*.json"))) == 1
    export_run(shared_run, "fiftyone", tmp_path, overwrite=True)
    assert (tmp_path / name).read_text() != "mine"


def test_nothing_is_written_through_a_link(shared_run, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "dataset" / "brain").symlink_to(tmp_path / "outside")
    with pytest.raises(OutputError, match="is a link or a file"):
        export_run(shared_run, "fiftyone", tmp_path / "dataset")
    assert list((tmp_path / "outside").iterdir()) == []
