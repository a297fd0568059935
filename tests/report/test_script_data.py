import json
import re
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from nouncut.compute.rows import principal_plane
from nouncut.images.hashing import content_hash
from nouncut.report.script_data import report_data, unit_square
from nouncut.report.write import write_report
from nouncut.runs.tables import images_table


def decoded(data, name, dtype):
    return np.frombuffer(b64decode(data["columns"][name]), dtype)


def test_a_run_without_arrays_has_no_map(tmp_path, write_run):
    run = write_run(tmp_path, images_table(["/a.jpg", "/b.jpg"]), [0, 0])
    assert not {"x", "y"} & report_data(run, None)["columns"].keys()


def test_an_embedding_serves_as_the_map(small_run):
    data = report_data(small_run, None)
    positions = np.stack([decoded(data, axis, "<u2") for axis in "xy"], axis=1)
    assert positions.shape == (24, 2)
    assert len(np.unique(positions, axis=0)) == 3
    assert (positions.min(), positions.max()) == (0, 65535)


def test_columns_are_those_of_the_table(small_run):
    data, table = report_data(small_run, None), small_run.assignments
    for column, name in {"cluster": "cluster", "second": "second_cluster"}.items():
        assert decoded(data, column, "<u2").tolist() == table[name].to_pylist()
    confidence = decoded(data, "confidence", np.uint8) / 250
    np.testing.assert_allclose(confidence, table["confidence"], atol=0.002)
    assert decoded(data, "outlier", np.uint8).nonzero()[0].tolist() == [23]


def test_groups_of_groups_are_listed_by_level(tmp_path, write_run):
    tree = {"sizes": [1] * 5, "levels": [[0, 0, 0, 0, 1], [0, 0, 1, 1, 2]]}
    images = images_table([f"/{row}.jpg" for row in range(5)])
    run = write_run(tmp_path / "deep", images, range(5), {"tree": tree})
    levels = report_data(run, None)["tree"]
    assert [[group["clusters"] for group in level] for level in levels] == [
        [[0, 1, 2, 3]],
        [[0, 1], [2, 3]],
    ]
    assert {group["name"] for level in levels for group in level} <= {
        node.name for node in nodes(run.tree)
    }
    flat = write_run(tmp_path / "flat", images, range(5))
    assert report_data(flat, None)["tree"] == []


def nodes(tree):
    return [tree, *(below for child in tree.children for below in nodes(child))]


def test_unknown_numbers_have_their_own_codes(tmp_path, write_run):
    run = write_run(tmp_path, images_table(["/a.jpg"]), [0], confidence=[np.nan])
    data = report_data(run, None)
    assert decoded(data, "second", "<u2").tolist() == [65535]
    assert decoded(data, "confidence", np.uint8).tolist() == [255]


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.floats(width=32)))
def test_all_points_are_scaled_into_the_square(points):
    inside = unit_square(points)
    assert inside.shape == points.shape
    assert ((inside >= 0) & (inside <= 1)).all()


def test_both_axes_are_scaled_alike():
    points = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 5.0]])
    assert unit_square(points).tolist() == [[0.0, 0.25], [1.0, 0.25], [0.5, 0.75]]


@pytest.mark.parametrize("n_columns", [1, 2, 3, 12])
def test_the_plane_is_that_of_a_singular_value_decomposition(n_columns):
    rows = np.random.default_rng(0).normal(size=(50, n_columns)) * np.arange(n_columns, 0, -1)
    plane = principal_plane(rows)
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    expected = (u * s)[:, :2]
    np.testing.assert_allclose(np.abs(plane[:, : expected.shape[1]]), np.abs(expected), atol=1e-9)


def blocks(page_path, name):
    text = page_path.read_text(encoding="utf-8")
    found = re.findall(f'<script type="application/json" class="{name}">(.*?)</script>', text)
    return [json.loads(block) for block in found]


def test_every_image_is_in_the_data_once(tmp_path, write_run):
    paths = [tmp_path / "photos" / f"{number}.png" for number in range(40)]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        Image.new("RGB", (40, 30), (number // 2, 0, 0)).save(path)
    paths[39].write_bytes(b"broken")
    images = images_table(paths, hashes=[content_hash(path) for path in paths])
    report = write_report(write_run(tmp_path / "run", images, [0] * 40))
    (files,) = blocks(report, "file-block")
    assert files == {"paths": [path.name for path in paths], "links": {}}
    (thumbnails,) = blocks(report, "thumbnail-block")
    # Twelve are shown as typical; of the pairs, the second has the picture of the first.
    shown = [row for row, entry in enumerate(thumbnails) if entry == row]
    assert len(shown) == 6
    assert [thumbnails[row] for row in range(13, 38, 2)] == list(range(12, 38, 2))
    assert all(b64decode(thumbnails[row])[8:12] == b"WEBP" for row in range(12, 38, 2))
    assert "known format" in thumbnails[39][0]


def test_many_images_have_their_thumbnails_beside_the_page(tmp_path, write_run, monkeypatch):
    monkeypatch.setattr("nouncut.report.shown_images.MAX_INLINE", 20)
    paths = [tmp_path / f"{number}.png" for number in range(30)]
    for number, path in enumerate(paths):
        Image.new("RGB", (40, 30), (number, 0, 0)).save(path)
    images = images_table(paths, hashes=[content_hash(path) for path in paths])
    report = write_report(write_run(tmp_path / "run", images, [0] * 30))
    (thumbnails,) = blocks(report, "thumbnail-block")
    folder = tmp_path / "run" / "report-thumbnails" / "160"
    assert {path.stem for path in folder.iterdir()} == set(thumbnails)
    text = report.read_text(encoding="utf-8")
    assert '"thumbnails":"report-thumbnails/160"' in text
    assert "img-src data: &#39;self&#39; file:;" in text
