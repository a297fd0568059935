"""The export against the data format that Embedding Atlas documents."""

from __future__ import annotations

import shlex
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.decomposition import PCA

from nouncut.errors import OutputError
from nouncut.exports.embedding_atlas import export_embedding_atlas, map_layout


def run_with(**arrays):
    return SimpleNamespace(
        directory="run", has_array=lambda name: name in arrays, array=lambda name: arrays[name]
    )


def test_the_assignments_come_with_a_map(small_run, tmp_path):
    result = export_embedding_atlas(small_run, tmp_path / "map.parquet")
    table = pq.read_table(result.path)
    assert result.n_written == table.num_rows == len(small_run.labels)
    assert result.problems == []
    names = small_run.assignments.column_names
    assert table.select(names).equals(small_run.assignments)
    assert table.column_names == [*names, "x", "y", "neighbors", "image"]
    points = np.column_stack([table["x"], table["y"]])
    assert points == pytest.approx(map_layout(small_run), abs=1e-6)


def test_images_are_small_jpegs(small_run, tmp_path):
    result = export_embedding_atlas(small_run, tmp_path / "map.parquet", thumbnail_size=20)
    for image in pq.read_table(result.path)["image"].to_pylist():
        with Image.open(BytesIO(image["bytes"])) as picture:
            assert (picture.format, picture.size) == ("JPEG", (20, 15))


def test_neighbours_are_the_nearest_in_the_graph(small_run, tmp_path):
    result = export_embedding_atlas(small_run, tmp_path / "map.parquet")
    graph = small_run.graph().toarray()
    found = pq.read_table(result.path)["neighbors"].to_pylist()
    for row, neighbors in enumerate(found):
        # Embedding Atlas stacks the lists, so all are of the same length.
        assert len(neighbors["ids"]) == len(neighbors["distances"]) == 16
        assert neighbors["ids"][0] == row
        others = [other for other in neighbors["ids"] if other != row]
        assert len(set(others)) == len(others) == min(15, np.count_nonzero(graph[row]))
        assert neighbors["distances"] == sorted(neighbors["distances"])
        assert all(0 <= distance <= 1 for distance in neighbors["distances"])
        left_out = np.setdiff1d(np.arange(len(graph)), [row, *others])
        assert graph[row, others].min() >= graph[row, left_out].max()


def test_the_hint_names_columns_that_are_there(small_run, tmp_path):
    result = export_embedding_atlas(small_run, tmp_path / "my map.parquet")
    words = shlex.split(result.hint)
    assert words[:2] == ["embedding-atlas", str(result.path)]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert set(options) == {"--x", "--y", "--text", "--neighbors", "--image"}
    assert set(options.values()) <= set(pq.read_table(result.path).column_names)


def test_images_that_are_gone_are_on_the_map_without_a_thumbnail(small_run, tmp_path):
    gone = small_run.paths()[3]
    gone.unlink()
    result = export_embedding_atlas(small_run, tmp_path / "map.parquet")
    images = pq.read_table(result.path)["image"].to_pylist()
    assert [row for row, image in enumerate(images) if image is None] == [3]
    assert len(result.problems) == 1
    assert "No such file" in result.problems[0]


def test_a_run_without_pictures_and_graph(make_run, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    for path in (run.directory / "arrays").glob("graph_*.npy"):
        path.unlink()
    result = export_embedding_atlas(run, tmp_path / "map.parquet")
    assert pq.read_table(result.path).column_names == [*run.assignments.column_names, "x", "y"]
    assert "--image" not in result.hint
    assert "--neighbors" not in result.hint


def test_many_rows_are_written_in_batches(tmp_path):
    n_rows = 3000
    run = run_with(layout=np.arange(2 * n_rows).reshape(n_rows, 2))
    run.manifest = {"source_kind": "features"}
    run.assignments = pa.table({"name": ["cat"] * n_rows})
    result = export_embedding_atlas(run, tmp_path / "map.parquet")
    file = pq.ParquetFile(result.path)
    assert file.num_row_groups == 3
    assert file.read()["x"].to_pylist() == list(range(0, 2 * n_rows, 2))


def test_a_layout_of_the_run_comes_first():
    points = np.arange(12.0).reshape(4, 3)
    run = run_with(layout=points, embedding=points * 2)
    assert (map_layout(run) == points[:, :2]).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 2500), st.integers(1, 12))
def test_principal_components_are_those_of_scikit_learn(seed, n_points, n_columns):
    scales = 2.0 ** -np.arange(n_columns)
    points = 3 + scales * np.random.default_rng(seed).normal(size=(n_points, n_columns))
    layout = map_layout(run_with(embedding=points))
    n_components = min(2, n_columns, n_points)
    expected = PCA(n_components, svd_solver="full").fit_transform(points) if n_points > 1 else [[0]]
    expected = np.asarray(expected, dtype=float)
    shared = expected.shape[1]
    assert np.abs(layout[:, :shared]) == pytest.approx(np.abs(expected), abs=1e-6)
    assert layout[:, shared:] == pytest.approx(0, abs=1e-6)


def test_a_run_without_anything_to_draw():
    with pytest.raises(OutputError, match="csv, jsonl or parquet"):
        map_layout(run_with())


def test_the_file_needs_its_ending(small_run, tmp_path):
    with pytest.raises(OutputError, match=r"map\.parquet"):
        export_embedding_atlas(small_run, tmp_path / "map")
