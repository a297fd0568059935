"""Runs with tables in parts and arrays of a sample: every reader opens them."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from photographs import tar_bytes
from typer.testing import CliRunner

from nouncut import cluster_images
from nouncut.cli.app import app
from nouncut.cli.demo import demo_images
from nouncut.distributed import cluster, sampling
from nouncut.errors import InputError
from nouncut.explore.edits import read_plan
from nouncut.explore.finding import find_duplicates, find_like, find_suggestions, find_text
from nouncut.explore.session import Session
from nouncut.exports.registry import export_run
from nouncut.report.write import write_report
from nouncut.runs.check import check_run
from nouncut.runs.predict import predict_images
from nouncut.runs.run import Run, open_run
from nouncut.runs.run_files import RunFiles

K, N, N_SAMPLED = 4, 1500, 300


@pytest.fixture(scope="module")
def features(source) -> np.ndarray:
    return np.load(source.parent / "whole.npy")


def cluster_large(patch, sources, client, output, limit, **options) -> Run:
    patch.setattr(cluster, "LARGEST_WHOLE", limit)
    patch.setattr(sampling, "SAMPLED", N_SAMPLED)
    return cluster_images(sources, client=client, output=output, partitions=2, **options)


@pytest.fixture(scope="module")
def made(source, client, tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        output = tmp_path_factory.mktemp("large") / "run"
        return cluster_large(patch, source, client, output, 1000, n_clusters=K).directory


@pytest.fixture
def large(made, tmp_path) -> Run:
    """Return a copy of the run, which a test may edit."""
    shutil.copytree(made, tmp_path / "run")
    return open_run(tmp_path / "run")


def command(*words) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return " ".join((found.output + found.stderr).split())


def sizes_of(run: Run) -> dict[int, int]:
    return {row["cluster"]: row["size"] for row in run.clusters.to_pylist()}


def test_the_tables_are_those_of_a_whole_run(large, run):
    assert large.manifest["parts"] == {"assignments": 3, "images": 3, "looks": 3}
    assert np.array_equal(large.labels, run.labels)
    for field in ("n_outliers", "n_copies", "prompts", "tree", "membership_temperature"):
        assert large.manifest[field] == run.manifest[field]
    for column in ("confidence", "second_confidence"):
        found = (np.asarray(one.assignments[column]) for one in (large, run))
        assert np.allclose(*found, atol=1e-5)
    for column in ("path", "second_cluster", "outlier"):
        assert large.assignments[column].equals(run.assignments[column])
    assert large.images.equals(run.images)
    assert np.allclose(large.clusters["cohesion"], run.clusters["cohesion"], atol=0.01)
    shared = [
        len(set(a) & set(b))
        for a, b in zip(
            large.clusters["exemplars"].to_pylist(),
            run.clusters["exemplars"].to_pylist(),
            strict=True,
        )
    ]
    assert min(shared) >= 10
    assert large.report.exists()


def test_the_sample_is_a_run_of_its_own(large):
    sample = open_run(large.directory / "sample")
    rows = large.sample.rows
    assert N_SAMPLED <= len(rows) <= 2 * N_SAMPLED + 24 * K + 60
    assert set(np.concatenate(large.clusters["exemplars"].to_pylist())) <= set(rows.tolist())
    assert np.array_equal(sample.labels, large.labels[rows])
    assert (
        sample.assignments["path"].to_pylist() == large.take_assignments(rows)["path"].to_pylist()
    )
    assert sample.graph().shape == (len(rows),) * 2
    assert large.sample.clusters["size"].to_pylist() == np.bincount(large.labels).tolist()
    assert not check_run(large.directory).problems
    looks = np.concatenate(list(large._files.features("looks")))
    assert looks.shape == (N, 64)
    assert looks.dtype == np.float16


def test_nothing_reads_all_rows_at_once(large, source, monkeypatch):
    read = RunFiles.table

    def table(files, name):
        assert name == "clusters" or not files.is_large, "all rows at once"
        return read(files, name)

    monkeypatch.setattr(RunFiles, "table", table)
    assert len(large.labels) == N
    assert len(large.search(like=7, n=5)) == 5
    assert export_run(large, "csv").n_written == N
    large.merge([0, 1])
    assert len(large.clusters) == K - 1
    assert sum(len(part) for part in large.assignment_parts()) == N
    assert write_report(large).exists()
    assert len(predict_images(large, source / "a.npy").table) == 600
    assert len(large.skipped) == 0
    assert large.explain(int(large.sample.rows[1]))


def test_damage_of_the_sample_is_found(large):
    path = large.directory / "sample" / "arrays" / "features.npy"
    path.write_bytes(path.read_bytes()[:-4])
    assert len(check_run(large.directory).problems) == 1
    other = large.manifest["sample"] | {"id": "0" * 32}
    with pytest.raises(InputError, match="belongs to another run"):
        _ = Run(large.directory, large.manifest | {"sample": other}).sample


def test_the_report_maps_the_sample_and_counts_all(large):
    large.report.unlink()
    assert "Report:" in command("report", large.directory)
    page = large.report.read_text()
    n_sampled = large.sample.n_images
    assert f"Map of {n_sampled:,} of {N:,} rows" in page
    for size in np.bincount(large.labels):
        assert f"of {size:,}</span>" in page
    assert f">{N:,}</data></dd>" in page
    data = json.loads(re.search(r'"nImages":(\d+)', page)[1])
    assert data == n_sampled


def test_new_images_go_where_they_would_in_a_whole_run(large, run, features, tmp_path):
    np.save(tmp_path / "known.npy", features)
    found = predict_images(large, tmp_path / "known.npy").table["cluster"].to_numpy()
    assert np.mean(found == large.labels) > 0.98
    # Between two images of one cluster; some are between clusters.
    others = np.random.default_rng(0).permutation(N)
    same = run.labels == run.labels[others]
    np.save(tmp_path / "new.npy", (features + features[others])[same])
    expected = predict_images(run, tmp_path / "new.npy").table["cluster"].to_numpy()
    said = command("predict", large.directory, tmp_path / "new.npy", "-o", tmp_path / "new.csv")
    assert f"{same.sum()} images" in said
    with (tmp_path / "new.csv").open() as file:
        found = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert np.mean(found == expected) > 0.97


def test_examples_are_searched_in_all_images(large, features, tmp_path):
    cosines = features @ features[7] / np.linalg.norm(features, axis=1)
    best = [row for row in np.argsort(-cosines, kind="stable") if row != 7][:10]
    found = large.search(like=7, n=10)
    # The copy of an image is nearest to it; half precision may swap others.
    assert len(set(found["row"].to_pylist()) & set(best)) >= 9
    assert not set(found["row"].to_pylist()) <= set(large.sample.rows.tolist())
    for part in (large.directory / "looks").iterdir():
        part.unlink()
    manifest = large.manifest | {"parts": {"assignments": 3, "images": 3}}
    fewer = Run(large.directory, manifest)
    assert fewer.searches_sample
    some = fewer.search(like=int(fewer.sample.rows[3]), n=5)["row"].to_pylist()
    assert set(some) <= set(fewer.sample.rows.tolist())


def test_explanations_are_of_the_sample(large):
    row = int(large.sample.rows[10])
    found = large.explain(row)
    assert found.row == row
    assert all(large.labels[one.row] == found.chosen.cluster for one in found.chosen.nearest)
    missing = next(row for row in range(N) if row not in set(large.sample.rows.tolist()))
    with pytest.raises(InputError, match="not among the"):
        large.explain(missing)


def test_edits_act_on_all_images(large, features, tmp_path):
    before, sizes = large.labels, np.bincount(large.labels)
    large.merge([0, 2])
    large.rename(1, "second")
    again = open_run(large.directory)
    assert np.array_equal(again.labels, np.where(before == 2, 0, before))
    assert again.names_by_cluster[1] == "second"
    assert sizes_of(again)[0] == sizes[0] + sizes[2]
    for row in again.clusters.to_pylist():
        assert (again.labels[row["exemplars"]] == row["cluster"]).all()
    np.save(tmp_path / "some.npy", features[:200])
    found = predict_images(again, tmp_path / "some.npy").table
    assert np.mean(found["cluster"].to_numpy() == again.labels[:200]) > 0.98
    again.move([3, 4, 5], "few")
    number = again.groups.find("few")
    assert again.take_assignments(np.array([5, 3, 0]))["name"].to_pylist()[:2] == ["few"] * 2
    assert (again.labels[3:6] == number).all()
    with pytest.raises(InputError, match="Splitting a group needs the neighbours of all images"):
        again.split(0)
    with pytest.raises(InputError, match="Finding duplicates needs"):
        again.duplicates()
    said = command("report", large.directory)
    assert "Report:" in said
    assert "few" in large.report.read_text()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_tables_of_all_images_are_exported(large, form, tmp_path):
    large.merge([0, 1])
    output = tmp_path / f"table.{form}"
    assert "1,500 written" in command("export", large.directory, "--to", form, "-o", output)
    if form == "csv":
        with output.open() as file:
            labels = [int(row["cluster"]) for row in csv.DictReader(file)]
    elif form == "jsonl":
        labels = [json.loads(line)["cluster"] for line in output.read_text().splitlines()]
    else:
        labels = pq.read_table(output)["cluster"].to_pylist()
    assert labels == large.labels.tolist()


def test_the_map_is_exported_with_the_sample(large, tmp_path):
    done = export_run(large, "embedding-atlas", tmp_path / "atlas.parquet")
    assert pq.read_metadata(done.path).num_rows == large.sample.n_images
    assert f"{large.sample.n_images:,} of {N:,} images" in done.hint


def test_the_explorer_shows_the_sample_and_edits_all(large):
    session = Session(large.directory)
    view = session.view()
    assert view.run.n_images == large.sample.n_images
    rows = [4, 9]
    places = large.sample.rows[rows]
    after = session.edit(
        read_plan({"verb": "move", "rows": rows, "to": "odd"}, view.run), view.version
    )
    assert open_run(large.directory).groups.rows(K).tolist() == places.tolist()
    after = session.edit(read_plan({"verb": "merge", "groups": [0, 1]}, after.run), after.version)
    assert after.run.whole.groups.names.keys() == {0, 2, 3, K}
    assert sizes_of(after.run)[0] == np.sum(np.isin(large.labels, [0, 1])) - np.sum(
        np.isin(large.labels[places], [0, 1])
    )
    with pytest.raises(InputError, match="Splitting a group needs"):
        session.preview(read_plan({"verb": "split", "group": 0}, after.run), after.version)
    with pytest.raises(InputError, match="Finding duplicates needs"):
        find_duplicates(session)
    assert max(find_like(session, 3, 5)["rows"]) < large.sample.n_images
    assert "suggestions" in find_suggestions(session)
    after = session.edit(read_plan({"verb": "undo"}, after.run), after.version)
    assert after.run.whole.groups.names.keys() == {0, 1, 2, 3, K}


def test_a_large_run_of_pictures(client, tmp_path, monkeypatch):
    paths = demo_images().paths[:24]
    (tmp_path / "tars").mkdir()
    for start in range(0, 24, 8):
        members = {path.name: path.read_bytes() for path in paths[start : start + 8]}
        (tmp_path / "tars" / f"{start:02d}.tar").write_bytes(tar_bytes(members))
    monkeypatch.setattr(cluster, "_FEWEST_IMAGES", 10)
    options = {"n_clusters": 2, "model": "mini", "vocabulary": ["bird", "water", "tree", "sky"]}
    run = cluster_large(monkeypatch, tmp_path / "tars", client, tmp_path / "run", 10, **options)
    assert "looks" in run.manifest["parts"]
    assert "meaning" in run.manifest["parts"]
    found = run.search("a bird", n=24)
    arrays = run.sample.array("semantic")
    assert len(found) == 24
    assert arrays.shape[0] == 24
    made = {path.stem for path in run.directory.glob("report-thumbnails/*/*.webp")}
    assert made == set(run.images["hash"].to_pylist())
    assert find_text(Session(run.directory), "bird", 5)["rows"]
    assert len(predict_images(run, paths[0]).table) == 1
