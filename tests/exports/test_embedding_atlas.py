"""The export against the data format that Embedding Atlas documents."""

from __future__ import annotations

import json
import os
import shlex
from io import BytesIO

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from nouncut.errors import OutputError
from nouncut.exports.embedding_atlas import export_embedding_atlas
from nouncut.exports.part import part_of
from nouncut.runs.run import open_run


def test_the_assignments_come_with_a_map(shared_run, tmp_path):
    result = export_embedding_atlas(part_of(shared_run), tmp_path / "map.parquet")
    table = pq.read_table(result.path)
    assert result.n_written == table.num_rows == len(shared_run.labels)
    assert result.problems == []
    names = shared_run.assignments.column_names
    assert table.select(names).equals(shared_run.assignments)
    assert table.column_names == ["image", "file", *names, "x", "y", "neighbors"]
    assert table["file"].to_pylist() == [
        os.path.basename(path) for path in table["path"].to_pylist()
    ]
    points = np.column_stack([table["x"], table["y"]])
    assert points == pytest.approx(shared_run.map(), abs=1e-6)


def test_images_are_small_jpegs(shared_run, tmp_path):
    result = export_embedding_atlas(
        part_of(shared_run), tmp_path / "map.parquet", thumbnail_size=20
    )
    for image in pq.read_table(result.path)["image"].to_pylist():
        with Image.open(BytesIO(image["bytes"])) as picture:
            assert (picture.format, picture.size) == ("JPEG", (20, 15))


def test_neighbours_are_the_nearest_in_the_graph(shared_run, tmp_path):
    result = export_embedding_atlas(part_of(shared_run), tmp_path / "map.parquet")
    graph = shared_run.graph().toarray()
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


def test_the_hint_names_columns_that_are_there(shared_run, tmp_path):
    result = export_embedding_atlas(part_of(shared_run), tmp_path / "my map.parquet")
    words = shlex.split(result.hint)
    assert words[:2] == ["embedding-atlas", str(result.path)]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    beside = [options.pop(name) for name in ("--labels", "--state")]
    assert beside == [str(file) for file in result.files[:2]]
    assert set(options) == {"--x", "--y", "--text", "--neighbors", "--image"}
    columns = set(pq.read_table(result.path).column_names)
    assert set(options.values()) <= columns
    charts = json.loads(result.files[1].read_text())["charts"].values()
    first, *others = charts
    assert first["type"] == "embedding"
    assert first["data"]["category"] == "name"
    assert set(first["data"].values()) <= columns
    assert {chart["data"]["field"] for chart in others if "data" in chart} <= columns


def test_labels_are_in_the_middle_of_their_groups(shared_run, tmp_path):
    result = export_embedding_atlas(part_of(shared_run), tmp_path / "map.parquet")
    labels = pq.read_table(result.files[0]).to_pylist()
    assert {label["text"] for label in labels} == set(shared_run.names)
    for label in labels:
        assert label["content"] == label["text"]
        number = shared_run.groups.find(label["text"])
        middle = np.median(shared_run.map()[shared_run.labels == number], axis=0)
        assert (label["x"], label["y"]) == pytest.approx(middle, abs=1e-5)


def test_neighbours_of_a_part_are_rows_of_the_file(shared_run, tmp_path):
    rows = np.flatnonzero(shared_run.labels > 0)
    result = export_embedding_atlas(part_of(shared_run, rows), tmp_path / "map.parquet")
    graph = shared_run.graph().toarray()[np.ix_(rows, rows)]
    for row, neighbors in enumerate(pq.read_table(result.path)["neighbors"].to_pylist()):
        others = [other for other in neighbors["ids"] if other != row]
        assert len(others) == min(15, np.count_nonzero(graph[row]))
        assert all(graph[row, other] > 0 for other in others)


def test_images_that_are_gone_are_on_the_map_without_a_thumbnail(small_run, tmp_path):
    gone = small_run.paths()[3]
    gone.unlink()
    result = export_embedding_atlas(part_of(small_run), tmp_path / "map.parquet")
    images = pq.read_table(result.path)["image"].to_pylist()
    assert [row for row, image in enumerate(images) if image is None] == [3]
    assert len(result.problems) == 1
    assert "No such file" in result.problems[0]


def test_a_run_without_pictures_and_graph(make_run, seal, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    seal(run.directory, arrays=["embedding", "features"])
    run = open_run(run.directory)
    result = export_embedding_atlas(part_of(run), tmp_path / "map.parquet")
    columns = ["file", *run.assignments.column_names, "x", "y"]
    assert pq.read_table(result.path).column_names == columns
    assert "--image" not in result.hint
    assert "--neighbors" not in result.hint


def test_many_rows_are_written_in_batches(write_run, tmp_path):
    n_rows = 3000
    points = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    run = write_run(
        [f"/photos/{row}.jpg" for row in range(n_rows)],
        np.zeros(n_rows, dtype=int),
        ["cat"],
        {"layout": points, "embedding": 2 * points},
    )
    result = export_embedding_atlas(part_of(run), tmp_path / "map.parquet")
    file = pq.ParquetFile(result.path)
    assert file.num_row_groups == 3
    table = file.read()
    assert table["path"].to_pylist() == run.assignments["path"].to_pylist()
    np.testing.assert_array_equal(np.column_stack([table["x"], table["y"]]), points)
    assert len(result.problems) == n_rows


def test_a_run_without_anything_to_draw(write_run, tmp_path):
    run = write_run(["/x.jpg"], [0], ["cat"])
    with pytest.raises(OutputError, match="csv, jsonl or parquet"):
        export_embedding_atlas(part_of(run), tmp_path / "map.parquet")


def test_the_file_needs_its_ending(shared_run, tmp_path):
    with pytest.raises(OutputError, match=r"`output` .*map\.parquet"):
        export_embedding_atlas(part_of(shared_run), tmp_path / "map")
