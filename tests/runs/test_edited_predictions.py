"""New images in groups that were edited."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut import cluster_images
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.predict import predict_images


@pytest.fixture
def features(tmp_path):
    data = make_clip_like(n_images=120, n_clusters=4, random_state=0)
    np.save(tmp_path / "clip.npy", data.features)
    return tmp_path / "clip.npy"


@pytest.fixture
def run(features, tmp_path):
    return cluster_images(features, 3, output=tmp_path / "run")


def test_images_of_a_split_group_go_to_the_right_part(run, features):
    run.split(0, 2)
    run.merge([1, 2])
    assert sorted(run.names_by_cluster) == [0, 1, 3]
    table = predict_images(run, features).table
    assert np.mean(table["cluster"].to_numpy() == run.labels) >= 0.98
    names = run.names_by_cluster
    assert table["name"].to_pylist() == [names[n] for n in table["cluster"].to_pylist()]
    assert all(row["cluster"] != row["second_cluster"] for row in table.to_pylist())
    assert set(table["second_cluster"].drop_null().to_pylist()) <= set(names)
    assert max(table["confidence"].to_pylist()) <= 1


def test_an_image_that_was_moved_takes_no_others_with_it(run, features):
    before = predict_images(run, features).table
    (row,) = np.flatnonzero(run.labels == 1)[:1]
    run.move(int(row), "odd one")
    assert predict_images(run, features).table.equals(before)


def test_images_like_those_set_aside_are_in_no_group(run, features):
    rows = np.flatnonzero(run.labels == 1)
    run.set_aside(rows.tolist())
    table = predict_images(run, features).table
    assert {table["cluster"][int(row)].as_py() for row in rows} == {None}
    assert table["name"].null_count == table["cluster"].null_count == len(rows)


def test_renamed_groups_alone_change_no_numbers(run, features):
    before = predict_images(run, features).table
    run.rename(0, "mine")
    after = predict_images(run, features).table
    assert after["cluster"].equals(before["cluster"])
    assert "mine" in after["name"].to_pylist()
