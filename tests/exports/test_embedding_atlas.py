"""The export against the data format that Embedding Atlas documents."""

from __future__ import annotations

import shlex
from io import BytesIO

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from nouncut.errors import OutputError
from nouncut.exports.embedding_atlas import export_embedding_atlas
from nouncut.runs.run import open_run


def test_the_assignments_come_with_a_map(shared_run, tmp_path):
    result = export_embedding_atlas(shared_run, tmp_path / "map.parquet")
    table = pq.read_table(result.path)
    assert result.n_written == table.num_rows == len(shared_run.labels)
    assert result.problems == []
    names = shared_run.assignments.column_names
    assert table.select(names).equals(shared_run.assignments)
    assert table.column_names == [*names, "x", "y", "neighbors", "image"]
    points = np.column_stack([table["x"], table["y"]])
    assert points == pytest.approx(shared_run.map(), abs=1e-6)


def test_images_are_small_jpegs(shared_run, tmp_path):
    result = export_embedding_atlas(shared_run, tmp_path / "map.parquet", thumbnail_size=20)
    for image in pq.read_table(result.path)["image"].to_pylist():
        with Image.open(BytesIO(image["bytes"])) as picture:
            assert (picture.format, picture.size) == ("JPEG", (20, 15))


def test_neighbours_are_the_nearest_in_the_graph(shared_run, tmp_path):
    result = export_embedding_atlas(shared_run, tmp_path / "map.parquet")
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
    result = export_embedding_atlas(shared_run, tmp_path / "my map.parquet")
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


def test_a_run_without_pictures_and_graph(make_run, seal, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    seal(run.directory, arrays=["embedding", "features"])
    run = open_run(run.directory)
    result = export_embedding_atlas(run, tmp_path / "map.parquet")
    assert pq.read_table(result.path).column_names == [*run.assignments.column_names, "x", "y"]
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
    result = export_embedding_atlas(run, tmp_path / "map.parquet")
    file = pq.ParquetFile(result.path)
    assert file.num_row_groups == 3
    table = file.read()
    assert table["path"].to_pylist() == run.assignments["path"].to_pylist()
    np.testing.assert_array_equal(np.column_stack([table["x"], table["y"]]), points)
    assert len(result.problems) == n_rows


def test_a_run_without_anything_to_draw(write_run, tmp_path):
    with pytest.raises(OutputError, match="csv, jsonl or parquet"):
        export_embedding_atlas(write_run(["/x.jpg"], [0], ["cat"]), tmp_path / "map.parquet")


def test_the_file_needs_its_ending(shared_run, tmp_path):
    with pytest.raises(OutputError, match=r"`output` .*map\.parquet"):
        export_embedding_atlas(shared_run, tmp_path / "map")
