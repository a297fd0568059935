"""Why an image is in its cluster."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError
from nouncut.method.graphs import normalize_graph
from nouncut.runs import explain
from nouncut.runs.run import open_run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter

N = 60
WORDS = ("cat", "dog", "<car>", "thing")


@pytest.fixture
def make(tmp_path):
    """Return a maker of runs of three clusters; image 0 lies between the first two."""

    def write(n_clusters=3, hashes=None, arrays=True, seed=0):
        rng = np.random.default_rng(seed)
        labels = np.arange(N) % n_clusters
        features = np.eye(3, 8)[labels] + rng.normal(scale=0.2, size=(N, 8))
        features[0] = np.eye(8)[0] + 0.9 * np.eye(8)[1]
        nouns = np.vstack([np.eye(3, 8), np.full((1, 8), 0.35)])
        graph = normalize_graph(csr_array(np.maximum(features @ features.T, 0)))[0]
        second = [None if n_clusters == 1 else int(label + 1) % n_clusters for label in labels]
        rows = [
            {
                "path": f"/photos/{row // 30}/{row % 30:02}.jpg",
                "cluster": int(label),
                "name": f"group {label}",
                "confidence": 0.7,
                "second_cluster": other,
                "second_name": None if other is None else f"group {other}",
                "second_confidence": 0.2,
                "outlier": row == 5,
            }
            for row, (label, other) in enumerate(zip(labels, second, strict=True))
        ]
        nothing = {"size": 0, "exemplars": [], "borderline": []}
        clusters = [{"cluster": c, "name": f"group {c}"} | nothing for c in range(n_clusters)]
        contents = RunContents(
            {"nouns": {"words": list(WORDS)}},
            pa.Table.from_pylist(rows, ASSIGNMENTS_SCHEMA),
            pa.Table.from_pylist(clusters, CLUSTERS_SCHEMA),
            images_table([row["path"] for row in rows], hashes=hashes),
            {
                "features": features.astype(np.float32),
                "semantic": features.astype(np.float32),
                "model_noun_features": np.stack([nouns, nouns]).astype(np.float32),
                "graph_data": graph.data,
                "graph_indices": graph.indices,
                "graph_indptr": graph.indptr,
            }
            if arrays
            else {},
        )
        with RunWriter(tmp_path / "run") as writer:
            return writer.finish(contents)

    return write


def test_the_nearest_are_those_of_the_largest_cosines(make):
    run = make()
    features = unit_rows(np.asarray(run.array("features"), dtype=np.float64))
    for row in range(N):
        found = run.explain(row)
        for reasons in (found.chosen, found.runner_up):
            cosines = features @ features[row]
            cosines[(run.labels != reasons.cluster) | (np.arange(N) == row)] = -2
            expected = np.argsort(-cosines)[:4]
            assert [image.row for image in reasons.nearest] == expected.tolist()
            similarities = [image.similarity for image in reasons.nearest]
            np.testing.assert_allclose(similarities, cosines[expected], atol=1e-5)
            assert [image.path for image in reasons.nearest] == [run.paths()[i] for i in expected]


def test_words_speak_for_the_cluster_that_they_suit(make):
    run = make()
    torn = run.explain(0)
    assert torn.chosen.words[0] == "cat"
    assert torn.runner_up.words[0] == "dog"
    assert set(torn.words[:2]) == {"cat", "dog"}
    clear = run.explain(3)
    assert clear.chosen.words[0] == clear.words[0] == "cat"
    assert "<car>" not in (*torn.chosen.words, *torn.runner_up.words)
    assert "dog" not in clear.runner_up.words


def test_parts_of_a_cluster_are_called_what_sets_them_apart(make):
    run = make()
    parts = [np.flatnonzero(np.arange(N) % 3 == kind) for kind in range(3)]
    assert explain.RunEvidence(run).part_words(parts) == list(WORDS[:3])
    halves = [parts[0][::2], parts[0][1::2]]
    assert None in explain.RunEvidence(run).part_words(halves)
    assert explain.RunEvidence(make(arrays=False)).part_words(parts) == [None] * 3


def test_a_split_names_new_groups(make):
    run = make()
    run.merge([0, 1, 2])
    run.rename(0, "all")
    run.split(0, 3)
    kinds = np.array(WORDS)[np.arange(N) % 3]
    for number, name in run.names_by_cluster.items():
        if number:
            assert np.mean(kinds[run.labels == number] == name) > 0.9
    run.split(0, 2)
    assert "all 2" in run.names


def test_copies_are_listed_and_not_compared(make):
    hashes = [f"{row:040}" for row in range(N)]
    for copy in (3, 6, 9):
        hashes[copy] = hashes[0]
    for copy in (15, 18, 21):
        hashes[copy] = hashes[12]
    run = make(hashes=hashes)
    found = run.explain(0)
    assert found.copies == tuple(run.paths()[row] for row in (3, 6, 9))
    for row in (0, 24):
        nearest = run.explain(row).chosen.nearest
        contents = [hashes[image.row] for image in nearest]
        assert len(set(contents)) == len(contents) == 4
        assert hashes[row] not in contents


def test_large_clusters_are_sampled_but_linked_images_are_compared(make, monkeypatch):
    run = make()
    expected = run.explain(0).chosen.nearest
    monkeypatch.setattr(explain, "_COMPARED", 3)
    assert run.explain(0).chosen.nearest == expected


def test_one_cluster_has_no_runner_up(make):
    found = make(n_clusters=1).explain(7)
    assert found.runner_up is None
    assert found.chosen.words
    assert "second choice" not in str(found)


def test_a_run_without_arrays_still_says_something(make):
    found = make(arrays=False).explain(5)
    assert found.chosen.nearest == found.chosen.words == ()
    assert "fits no group well" in str(found)


def test_the_text_and_the_json_say_the_same(make):
    run = make()
    found = run.explain(5)
    text, plain = str(found), json.loads(json.dumps(found.to_json()))
    assert plain["row"] == 5
    assert plain["is_outlier"]
    for reasons in (plain["chosen"], plain["runner_up"]):
        assert f'"{reasons["name"]}"' in text
        for image in reasons["nearest"]:
            assert f"{image['similarity']:.2f}  {image['path']}" in text
        assert ", ".join(reasons["words"]) in text


@pytest.mark.parametrize("image", [33, np.int64(33), "/photos/1/03.jpg", "1/03.jpg", "33"])
def test_an_image_is_found_by_row_path_or_the_end_of_it(make, image):
    assert make().explain(image).row == 33


def test_a_relative_path_is_found(make, monkeypatch, tmp_path):
    run = make()
    monkeypatch.chdir("/")
    assert run.explain("photos/1/03.jpg").row == 33


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (60, "no image 60: the run has 60 images"),
        (-1, "no image -1"),
        ("77", "no image 77"),
        ("03.jpg", "2 images are called 03.jpg: /photos/0/03.jpg, /photos/1/03.jpg"),
        ("03.jpeg", "03.jpeg is not an image of this run. Did you mean /photos"),
        ("entirely else", "Pass a path as in its table"),
        ("3.jpg", "3.jpg is not an image"),
    ],
)
def test_an_unknown_image_is_an_error_that_helps(make, image, message):
    run = make()
    with pytest.raises(InputError, match=message.replace(".", r"\.")):
        run.explain(image)


def test_names_that_are_no_text(small_run):
    for row, path in enumerate(open_run(small_run.directory).paths()):
        found = small_run.explain(path)
        assert found.row == row
        assert "\n" not in str(found).splitlines()[0]
        json.dumps(found.to_json()).encode()
