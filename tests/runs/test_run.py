"""Reading runs."""

import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nouncut.errors import InputError
from nouncut.images.find import SkippedFile
from nouncut.runs.run import open_run


def test_what_was_written_is_read(small_run, tmp_path):
    run = open_run(tmp_path / "run")
    assert run.directory == tmp_path / "run"
    assert run.manifest == small_run.manifest
    assert run.labels.tolist() == [0] * 12 + [1] * 8 + [2] * 4
    assert run.labels.dtype == np.intp
    assert run.names == run.clusters["name"].to_pylist()
    assert run.assignments["name"].to_pylist() == [run.names[label] for label in run.labels]
    assert run.assignments["outlier"].to_pylist() == [False] * 23 + [True]
    assert run.images["row"].to_pylist() == [*range(24), None]
    assert run.skipped == [SkippedFile(tmp_path / "photos/broken <i>file.jpg", "the file is empty")]
    assert run.report == tmp_path / "run" / "report.html"
    assert repr(run) == f"Run('{tmp_path}/run': 24 images in 3 clusters)"


def test_paths_lead_to_the_files_whatever_their_names(small_run):
    paths = small_run.paths()
    assert len(paths) == 24
    assert all(path.is_file() for path in paths)
    texts = small_run.images["path"].to_pylist()
    raw = small_run.images["raw_path"].to_pylist()
    for path, text, original in zip(paths, texts, raw, strict=False):
        if original is None:
            assert str(path) == text
        else:
            assert os.fsencode(path) == original
            assert "\N{REPLACEMENT CHARACTER}" in text
    if os.name == "posix":
        assert sum(original is not None for original in raw) == 1


def test_arrays_are_mapped_and_cannot_be_written(small_run):
    features = small_run.array("features")
    assert isinstance(features, np.memmap)
    assert features.shape == (24, 16)
    assert features.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1
    assert small_run.has_array("embedding")
    assert not small_run.has_array("semantic")
    with pytest.raises(
        InputError, match=r"has no array 'semantic'. It has: embedding, features, g"
    ):
        small_run.array("semantic")
    with pytest.raises(ValueError, match="cannot be the name of an array"):
        small_run.array("../../secret")


def test_the_graph_is_whole(small_run):
    graph = small_run.graph()
    assert graph.shape == (24, 24)
    assert (graph != graph.T).nnz == 0
    assert (graph @ np.ones(24) > 0).all()


def test_a_run_cannot_be_changed_by_accident(small_run):
    with pytest.raises(AttributeError):
        small_run.directory = "elsewhere"
    assert small_run.assignments is small_run.assignments


@pytest.mark.parametrize("name", ["", "manifest.json", "report.html"])
def test_a_run_is_found_by_its_files(small_run, name):
    assert open_run(small_run.directory / name).directory == small_run.directory
    assert open_run(os.fspath(small_run.directory / name)).names == small_run.names


def test_what_is_not_a_run(tmp_path):
    with pytest.raises(InputError, match=r"nowhere is not a run: it has no manifest.json"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"it has no manifest.json"):
        open_run(tmp_path)
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(InputError, match="is not a run"):
        open_run(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("\udcff", "cannot be read"),
        ("[1]", "not one of nouncut"),
        ('{"name": "an app", "status": "complete"}', "not one of nouncut"),
        ('{"format": "1", "status": "complete"}', "not one of nouncut"),
        ('{"format": 1, "status": "odd"}', "not one of nouncut"),
        ('{"format": 2, "status": "complete"}', r"newer nouncut \(format 2; .*Update nouncut"),
        ('{"format": 1, "status": "running"}', "unfinished.*run the command again"),
        ('{"format": 1, "status": "complete"}', "manifest.json is missing or damaged .*'n_images'"),
    ],
)
def test_other_manifests(tmp_path, text, message):
    (tmp_path / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message) as raised:
        open_run(tmp_path)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize("name", ["assignments", "clusters", "images"])
def test_tables_that_are_missing_or_broken(small_run, seal, name):
    path = small_run.directory / f"{name}.parquet"
    table, content = pq.read_table(path), path.read_bytes()
    message = rf"{name}.parquet is missing or damaged .*again"

    def is_refused():
        seal(small_run.directory)
        with pytest.raises(InputError, match=message):
            open_run(small_run.directory)

    path.unlink()
    is_refused()
    path.write_bytes(b"")
    is_refused()
    path.write_bytes(content[: len(content) // 2])
    is_refused()
    pq.write_table(table.slice(1), path)
    is_refused()
    pq.write_table(table.drop_columns(table.column_names[0]), path)
    is_refused()
    pq.write_table(table.set_column(0, table.column_names[0], pa.nulls(len(table))), path)
    is_refused()


@pytest.mark.parametrize("name", ["assignments", "clusters", "images"])
def test_a_flipped_bit_in_a_table_is_noticed(small_run, name):
    path = small_run.directory / f"{name}.parquet"
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    run = open_run(small_run.directory)
    with pytest.raises(InputError, match=rf"{name}.parquet is missing or damaged"):
        getattr(run, name)


def test_further_columns_are_kept(small_run, seal):
    path = small_run.directory / "clusters.parquet"
    pq.write_table(pq.read_table(path).append_column("colour", pa.array(["r", "g", "b"])), path)
    seal(small_run.directory)
    assert open_run(small_run.directory).clusters["colour"].to_pylist() == ["r", "g", "b"]


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", pickle.dumps([1, 2])])
def test_broken_arrays(small_run, content):
    (small_run.directory / "arrays/features.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"features.npy is missing or damaged"):
        small_run.array("features")


def test_arrays_are_never_unpickled(small_run):
    np.save(small_run.directory / "arrays/features.npy", np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"features.npy is missing or damaged"):
        small_run.array("features")


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_a_broken_graph(small_run, seal, part):
    path = small_run.directory / f"arrays/graph_{part}.npy"
    np.save(path, np.load(path) + 1000)
    seal(small_run.directory)
    with pytest.raises(InputError, match="missing or damaged"):
        open_run(small_run.directory).graph()


def test_a_run_that_was_replaced_says_so(small_run, make_run, seal):
    opened = open_run(small_run.directory)
    assert opened.labels[0] == 0
    mapped = opened.array("features")
    before = mapped.copy()
    make_run(small_run.directory, seed=1)
    assert np.array_equal(mapped, before)
    assert len(opened.assignments) == 24
    with pytest.raises(InputError, match=r"written anew since it was opened. Open it again"):
        _ = opened.clusters
    with pytest.raises(InputError, match="written anew"):
        opened.array("features")
    seal(small_run.directory, status="running")
    with pytest.raises(InputError, match="unfinished"):
        open_run(small_run.directory)


def test_a_run_can_be_moved(small_run, tmp_path):
    shutil.move(small_run.directory, tmp_path / "moved")
    run = open_run(tmp_path / "moved")
    assert len(run.names) == 3
    assert all(path.is_file() for path in run.paths())


def test_a_run_of_features_has_no_pictures(make_run, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    assert run.images["path"].to_pylist() == [f"row {row}" for row in range(24)]
    assert run.images["hash"].null_count == run.images["bytes"].null_count == 24
    assert run.skipped == []
    assert "<img" not in run._repr_html_()
