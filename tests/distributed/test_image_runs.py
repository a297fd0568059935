"""From images that are not files to a run with a report."""

from __future__ import annotations

import re

import numpy as np
import pytest
from photographs import tar_bytes

from nouncut import cluster_images
from nouncut.cli.demo import demo_images
from nouncut.distributed import cluster
from nouncut.images.hashing import content_hash
from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore

N_IMAGES = 24


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return FeatureStore(tmp_path_factory.mktemp("store"))


@pytest.fixture
def few_images(monkeypatch):
    monkeypatch.setattr(cluster, "_FEWEST_IMAGES", 10)


def test_a_run_from_tars_has_pictures_and_lists_what_is_bad(client, few_images, store, tmp_path):
    paths = demo_images().paths[:N_IMAGES]
    folder = tmp_path / "tars"
    folder.mkdir()
    for start in range(0, N_IMAGES, 8):
        members = {path.name: path.read_bytes() for path in paths[start : start + 8]}
        (folder / f"{start:02d}.tar").write_bytes(tar_bytes(members))
    (folder / "99.tar").write_bytes(b"\x01" * 2048)
    run = cluster_images(
        folder,
        2,
        model="mini",
        vocabulary=["bird", "water", "tree", "sky"],
        output=tmp_path / "run",
        store=store,
        client=client,
        cache=tmp_path / "cache",
    )
    again = open_run(run.directory)
    assert again.images["hash"].to_pylist()[:N_IMAGES] == [content_hash(path) for path in paths]
    assert str(again.paths()[10]) == f"{folder}/08.tar#{paths[10].name}"
    assert [(str(one.path), one.reason[:18]) for one in again.skipped] == [
        (f"{folder}/99.tar", "the tar is damaged")
    ]
    assert np.bincount(again.labels).sum() == N_IMAGES
    assert "99.tar" in " ".join(again.manifest["warnings"])
    made = {path.stem for path in run.directory.glob("report-thumbnails/*/*.webp")}
    assert made == set(again.images["hash"].to_pylist()[:N_IMAGES])
    page = run.report.read_text()
    assert "in a tar, a table or an object store" not in page
    assert not re.search(r'href="[^"]*\.tar', page)
    assert not (run.directory / "work").exists()
