"""Pairs of groups that may be one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from nouncut import cluster_images
from nouncut.errors import InputError, ParameterError
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.run import Run
from nouncut.runs.writer import RunContents, RunWriter

N_CLASSES = 4


@pytest.fixture(scope="module")
def data():
    return make_clip_like(400, N_CLASSES, separation=0.45, random_state=0)


@pytest.fixture(scope="module")
def cluster(data, tmp_path_factory):
    def run(n_clusters: int) -> Run:
        folder = tmp_path_factory.mktemp("features")
        np.save(folder / "clip.npy", data.features)
        return cluster_images(folder / "clip.npy", n_clusters, output=folder / "run")

    return run


def majority(run, data, cluster):
    return np.bincount(data.labels[run.labels == cluster]).argmax()


def test_parts_of_one_class_are_suggested_and_classes_are_not(cluster, data):
    assert cluster(N_CLASSES).suggestions() == []
    run = cluster(N_CLASSES + 2)
    found = run.suggestions()
    assert found
    assert all(
        majority(run, data, a) == majority(run, data, b) for a, b in (one.clusters for one in found)
    )
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert 0.5 <= scores[-1] <= scores[0] <= 1
    sizes = dict(
        zip(run.clusters["cluster"].to_pylist(), run.clusters["size"].to_pylist(), strict=True)
    )
    for one in found:
        assert sizes[one.clusters[0]] >= sizes[one.clusters[1]]
        assert one.names == tuple(run.names_by_cluster[number] for number in one.clusters)
        assert "links lead to the larger one." in one.reason
        rows = np.array(one.pairs)
        assert run.labels[rows].tolist() == [list(one.clusters)] * len(rows)
        assert len(np.unique(rows)) == rows.size > 0


def test_answers_are_remembered(cluster):
    run = cluster(N_CLASSES + 2)
    first, *rest = run.suggestions()
    run.keep_apart(first.clusters)
    assert [one.clusters for one in run.suggestions()] == [one.clusters for one in rest]
    run.undo()
    assert run.suggestions()[0] == first
    run.merge(first.clusters)
    assert not any(first.clusters[1] in one.clusters for one in run.suggestions())
    assert len(run.suggestions(1)) <= 1


def test_images_that_are_set_aside_are_not_suggested(cluster):
    run = cluster(N_CLASSES + 2)
    first = run.suggestions()[0]
    run.set_aside(np.flatnonzero(run.labels == first.clusters[1]).tolist())
    numbers = {number for one in run.suggestions() for number in one.clusters}
    assert numbers <= set(run.names_by_cluster)


def test_runs_without_a_graph_have_no_suggestions(small_run, tmp_path):
    with pytest.raises(ParameterError, match="`n`"):
        small_run.suggestions(0)
    tables = small_run.assignments, small_run.clusters, small_run.images
    with RunWriter(tmp_path / "bare") as writer:
        bare = writer.finish(RunContents(small_run.manifest, *tables))
    assert bare.suggestions() == []


def test_classes_stay_whole_and_merged_classes_fall_apart(cluster, data):
    run = cluster(N_CLASSES)
    with pytest.raises(InputError, match="looks like one kind and was not divided"):
        run.split(0)
    run.merge([0, 1, 2])
    merged = np.flatnonzero(run.labels == 0)
    done = run.split(0)
    assert "into 3 groups" in done.text
    assert adjusted_rand_score(run.labels[merged], data.labels[merged]) > 0.9
    assert "into 2 groups" in run.split(0, 2).text
