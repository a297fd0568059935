"""A run directory that version 0.1.0 wrote can still be used."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from nouncut import open_run, predict_images
from nouncut.exports.registry import export_run
from nouncut.report.write import write_report
from nouncut.runs.run import Run
from nouncut.store.store import FeatureStore


@pytest.fixture
def run(tmp_path) -> Run:
    shutil.copytree(Path(__file__).with_name("run-0.1.0"), tmp_path / "run")
    return open_run(tmp_path / "run")


def test_it_opens_with_all_its_tables_and_arrays(run):
    assert (run.manifest["nouncut"], run.manifest["n_images"]) == ("0.1.0", 45)
    assert np.bincount(run.labels).tolist() == run.clusters["size"].to_pylist()
    assert run.map().shape == (45, 2)
    assert run.graph().shape == (45, 45)
    assert "45 images in 3 clusters" in run._repr_html_()


def test_its_names_have_no_confidence_and_are_no_guesses(run):
    assert run.clusters["name_confidence"].null_count == 3
    assert run.clusters["guess"].to_pylist() == [False] * 3


def test_its_report_is_built_and_shows_its_settings(run):
    page = write_report(run).read_text()
    assert "Neighbours per image" in page
    assert "WordNet" in page


@pytest.mark.parametrize("to", ["csv", "jsonl", "parquet", "embedding-atlas"])
def test_it_is_exported(run, to, tmp_path):
    suffix = "parquet" if to == "embedding-atlas" else to
    assert export_run(run, to, tmp_path / f"out.{suffix}").n_written == 45


def test_new_images_are_placed_among_its_own(run, tmp_path):
    rows = np.asarray(run.array("features"))
    noise = 0.01 * np.random.default_rng(0).normal(size=rows.shape)
    np.save(tmp_path / "new.npy", np.vstack([rows, rows + noise]))
    found = predict_images(run, tmp_path / "new.npy", store=FeatureStore(tmp_path / "store")).table
    labels = found["cluster"].to_numpy()
    assert labels[:45].tolist() == run.labels.tolist()
    assert np.mean(labels[45:] == run.labels) > 0.8
