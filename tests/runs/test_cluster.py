"""From sources to a run: what is done again and what is not, and what is refused."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest

from nouncut import cluster_images
from nouncut.errors import InputError, OutputError, ParameterError
from nouncut.models.choose import load_encoder
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.predict import predict_images
from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore


@pytest.fixture
def cluster(tiny_clip, store, words, tmp_path):
    """Return the function with what all runs here share."""

    def run(paths, n_clusters=3, **options):
        defaults = {
            "model": tiny_clip,
            "store": store,
            "vocabulary": words,
            "output": tmp_path / "run",
        }
        return cluster_images(paths, n_clusters, **(defaults | options))

    return run


@pytest.fixture
def features(tmp_path):
    """Return a maker of files of features."""

    def write(array, name="features.npy"):
        np.save(tmp_path / name, array)
        return tmp_path / name

    return write


def state_of(directory):
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "run.lock"]
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def test_the_same_run_is_returned_and_nothing_is_written(cluster, draw, tmp_path):
    first = cluster(draw(range(12)))
    state = state_of(first.directory)
    again = cluster(tmp_path / "photos")
    assert again.manifest["n_encoded"] == 0
    assert again.manifest == first.manifest | {"n_encoded": 0}
    assert again.labels.tolist() == first.labels.tolist()
    assert state_of(first.directory) == state


def test_a_missing_report_is_made_again(cluster, draw):
    run = cluster(draw(range(6)), 2)
    run.report.unlink()
    assert cluster(draw(range(0)), 2).report.is_file()


@pytest.mark.parametrize(
    "other",
    [
        {"n_clusters": 2},
        {"random_state": 1},
        {"n_neighbors": 5},
        {"tau": 0.5},
        {"vocabulary": ("cat", "dog", "sea")},
        {"prompts": ("{}",)},
        {"compare": "looks"},
    ],
    ids=str,
)
def test_other_settings_make_another_run(cluster, draw, other):
    photos = draw(range(9))
    first = cluster(photos)
    with pytest.raises(OutputError, match="replace=True"):
        cluster(photos, **other)
    second = cluster(photos, replace=True, **other)
    assert second.manifest["id"] != first.manifest["id"]
    assert second.manifest["n_encoded"] == 0


def test_other_images_make_another_run(cluster, draw, tmp_path):
    ids = [cluster(draw(range(9))).manifest["id"]]
    draw(range(9, 10))
    ids.append(cluster(tmp_path / "photos").manifest["id"])
    (tmp_path / "photos" / "00.png").rename(tmp_path / "photos" / "zero.png")
    ids.append(cluster(tmp_path / "photos").manifest["id"])
    (tmp_path / "photos" / "empty.jpg").touch()
    ids.append(cluster(tmp_path / "photos").manifest["id"])
    (tmp_path / "photos" / "zero.png").unlink()
    last = cluster(tmp_path / "photos")
    assert len({*ids, last.manifest["id"]}) == 5
    assert (last.manifest["n_images"], last.manifest["n_skipped"]) == (9, 1)


def test_labels_do_not_depend_on_the_number_of_threads(cluster, draw, tmp_path):
    photos = draw(range(30))
    one, two = (
        cluster(photos, "auto", n_jobs=n_jobs, output=tmp_path / str(n_jobs)) for n_jobs in (1, 2)
    )
    assert one.labels.tolist() == two.labels.tolist()
    assert one.names == two.names
    np.testing.assert_array_equal(one.array("embedding"), two.array("embedding"))
    assert one.manifest["content"] == two.manifest["content"]


@pytest.mark.parametrize("n_images", [1, 2, 3, 5])
def test_more_clusters_than_images_are_refused_before_anything_is_written(
    cluster, draw, tmp_path, n_images
):
    error = InputError if n_images == 1 else ParameterError
    with pytest.raises(error, match="two is the minimum" if n_images == 1 else "ask for fewer"):
        cluster(draw(range(n_images)), 6)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
def test_copies_of_one_image_can_be_clustered(cluster, draw, n_clusters):
    run = cluster(draw(range(8), copies=True), n_clusters, compare="looks")
    assert len(run.labels) == 8
    assert run.manifest["n_encoded"] <= 1
    assert all(len(rows) <= 1 for rows in run.clusters["exemplars"].to_pylist())


def test_warnings_are_in_the_manifest_and_not_on_the_screen(features, tmp_path):
    data = make_clip_like(60, 3, random_state=0)
    alone = np.vstack([data.features, -data.features.sum(axis=0, keepdims=True)])
    # Warnings are errors in tests: none may get out.
    run = cluster_images(features(alone), 3, output=tmp_path / "run")
    assert len(run.manifest["warnings"]) == 1
    assert run.manifest["n_isolated"] == 1
    assert json.loads((run.directory / "manifest.json").read_text()) == run.manifest


def test_features_without_a_model_are_grouped_by_looks(features, tmp_path):
    data = make_clip_like(90, 3, random_state=0)
    run = cluster_images(features(data.features), 3, output=tmp_path / "run")
    assert clustering_scores(data.labels, run.labels).acc > 0.9
    assert run.names == ["group 0", "group 1", "group 2"]
    assert run.manifest["source_kind"] == "features"
    assert run.manifest["model"]["name"] is None
    assert run.images["path"].to_pylist()[:2] == ["row 0", "row 1"]
    with pytest.raises(ParameterError, match="`model`"):
        cluster_images(tmp_path / "features.npy", 3, vocabulary=["cat"], output=tmp_path / "other")


def test_features_with_their_model_are_what_images_are(cluster, draw, features, store, tiny_clip):
    run = cluster(draw(range(12)), compare="looks")
    path = features(np.asarray(run.array("features")))
    same = cluster(path, compare="looks", output=run.directory.with_name("same"))
    assert same.labels.tolist() == run.labels.tolist()
    assert same.names == run.names
    assert same.manifest["nouns"] == run.manifest["nouns"]
    encoder = load_encoder(tiny_clip).encoder
    assert same.manifest["model"]["fingerprint"] == encoder.fingerprint
    with pytest.raises(InputError, match="rows of 7 numbers"):
        cluster(features(np.ones((9, 7)), "other.npy"), replace=True)
    found = predict_images(same, path, store=store).table
    assert found["path"].to_pylist()[0] == "row 0"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_no_numbers_are_named(features, tmp_path, value):
    array = np.eye(6)
    array[4, 2] = array[5, 0] = value
    with pytest.raises(InputError, match=r"features\.npy: 2 rows .* row 4 "):
        cluster_images(features(array), 2, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_several_files_of_features_are_refused(features, tmp_path):
    paths = [features(np.eye(4), "a.npy"), features(np.eye(4), "b.npy")]
    with pytest.raises(InputError, match="one file"):
        cluster_images(paths, 2, output=tmp_path / "run")


@pytest.mark.parametrize("compare", ["looks", "words"])
def test_the_images_of_a_run_are_predicted_where_they_are(cluster, draw, store, compare):
    photos = draw(range(30))
    run = cluster(photos, compare=compare)
    found = predict_images(run, photos, store=store)
    assert found.table["path"].to_pylist() == run.assignments["path"].to_pylist()
    assert np.mean(found.table["cluster"].to_numpy() == run.labels) >= 0.9
    assert np.mean(found.table["unseen"].to_numpy(zero_copy_only=False)) <= 0.1


def test_a_run_of_another_model_is_not_predicted_with(cluster, draw, tmp_path, store, seal):
    run = cluster(draw(range(9)))
    seal(run.directory, model=run.manifest["model"] | {"fingerprint": "another"})
    with pytest.raises(InputError, match="another version"):
        predict_images(open_run(run.directory), tmp_path / "photos", store=store)


def test_an_interrupted_run_goes_on(cluster, draw, tmp_path):
    photos = draw(range(9))
    store = FeatureStore(tmp_path / "store")

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster(photos, store=store, on_estimate=interrupt)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "running"
    # So few images are encoded by the trial that the estimate is made from, and kept.
    assert cluster(photos, store=store).manifest["n_encoded"] == 0


def test_the_manifest_tells_what_was_done(cluster, draw, words):
    start = time.perf_counter()
    manifest = cluster(draw(range(12)), "auto").manifest
    total = time.perf_counter() - start
    assert manifest["status"] == "complete"
    assert manifest["nouns"]["words"] == list(words)
    assert manifest["cluster_count"]["n_clusters"] == manifest["n_clusters"]
    assert sum(prompt["weight"] for prompt in manifest["prompts"]) == pytest.approx(1)
    assert len(manifest["prompts"]) == 7
    stages = {"encoding images", "encoding nouns", "counting groups", "clustering"}
    assert stages <= set(manifest["seconds"])
    assert 0 <= manifest["seconds"]["encoding images"] < total
    assert 0 < manifest["seconds"]["clustering"] < total


def test_the_manifest_has_the_settings_of_the_caller(cluster, draw, words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])
    manifest = cluster(draw(range(9)), "auto", tau=0.5, random_state=3).manifest
    asked = manifest["settings"]
    assert (asked["n_clusters"], asked["tau"], asked["random_state"]) == ("auto", 0.5, 3)
    assert asked["vocabulary"] == list(words)
    assert manifest["used"]["noun_filter"] == "none"
    assert manifest["used"]["compare"] == "words"
    assert manifest["used"]["n_clusters"] == manifest["n_clusters"]
    assert "kernel" not in json.dumps(manifest)
