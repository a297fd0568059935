"""Groups of groups of real runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nouncut import cluster_images, open_run
from nouncut.errors import ParameterError
from nouncut.models.efficientnet import FEATURE_DIM, Classifier, load_weights
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.tree import TreeNode, run_tree
from nouncut.words.wordnet import broader_synsets, load_wordnet, synsets_of

# Numbers of ImageNet's classes.
KINDS = {"beagle": 162, "whippet": 172, "tabby": 281, "garbage truck": 569, "sports car": 817}


@pytest.fixture(scope="module")
def run(tmp_path_factory, shared_store):
    """Return a run of what `mini` sees in photographs of dogs, cats and cars."""
    folder = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 0.5, (len(KINDS) * 12, 1000))
    logits[np.arange(len(logits)), np.repeat(list(KINDS.values()), 12)] += 14
    classify = Classifier(load_weights()).logits
    bias = classify(np.zeros((1, FEATURE_DIM)))
    weights = classify(np.eye(FEATURE_DIM)) - bias
    rows = np.linalg.lstsq(weights.T, (logits - bias).T)[0].T
    np.save(folder / "kinds.npy", rows.astype(np.float32))
    return cluster_images(
        folder / "kinds.npy", [2, 5], model="mini", store=shared_store, output=folder / "run"
    )


@pytest.fixture
def plain(tmp_path):
    """Return a run without names."""
    data = make_clip_like(n_images=240, n_clusters=8, random_state=0)
    np.save(tmp_path / "clip.npy", data.features)
    return cluster_images(tmp_path / "clip.npy", (2, 4, 8), output=tmp_path / "run")


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


def test_animals_and_vehicles_are_the_two_groups_above(run):
    assert sorted(run.names) == sorted(KINDS)
    above = {child.synset: {run.names[c] for c in child.clusters} for child in run.tree.children}
    animals, vehicles = {"beagle", "whippet", "tabby"}, {"garbage truck", "sports car"}
    assert sorted(map(len, above.values())) == [2, 3]
    for synset, names in above.items():
        assert names in (animals, vehicles)
        for name in names:
            assert synset in broader_synsets(synsets_of(name)[:1])
    assert {load_wordnet()[synset].word for synset in above} == {"domestic animal", "motor vehicle"}


def test_levels_nest_and_sizes_add_up(plain):
    tree = plain.tree
    assert sorted(tree.clusters) == list(range(8))
    assert (tree.size, len(tree.children), tree.depth) == (240, 2, 3)
    for node in walk(tree):
        rows = np.isin(plain.labels, node.clusters)
        assert node.size == rows.sum()
        assert (node.cluster is None) == bool(node.children)
        # A group of one group would say the same twice.
        assert len(node.children) != 1
        assert [child.size for child in node.children] == sorted(
            (child.size for child in node.children), reverse=True
        )
    assert len(set(plain.tree.paths().values())) == 8


def test_paths_lead_from_the_coarsest_group_to_the_cluster(run):
    paths = run.tree.paths()
    assert {names[-1] for names in paths.values()} == set(KINDS)
    parent = next(child for child in run.tree.children if len(child.children) == 2)
    for cluster in parent.clusters:
        assert paths[cluster] == (parent.name, run.names[cluster])


def test_json_and_text_say_the_same(run):
    found = json.loads(json.dumps(run.tree.to_json()))

    def read(node):
        return TreeNode(**node | {"children": tuple(map(read, node["children"]))})

    assert read(found) == run.tree
    lines = str(run.tree).splitlines()
    assert lines[0] == "all images (60)"
    assert sum(line.startswith("    ") for line in lines) == len(KINDS)


def test_a_run_without_kept_levels_has_the_same_tree(plain):
    manifest = {key: value for key, value in plain.manifest.items() if key != "tree"}
    assert run_tree(replace(plain, manifest=manifest)) == plain.tree
    damaged = plain.manifest | {"tree": {"sizes": [30] * 8, "levels": [[99] * 8]}}
    assert run_tree(replace(plain, manifest=damaged)) == plain.tree


def test_a_run_of_version_0_1_0_has_a_tree(tmp_path):
    shutil.copytree(Path(__file__).with_name("run-0.1.0"), tmp_path / "run")
    earlier = open_run(tmp_path / "run")
    assert sorted(earlier.tree.clusters) == [0, 1, 2]
    assert len(run_tree(earlier, [2]).children) == 2


def test_names_that_a_person_gave_are_in_the_tree(run):
    beagle = run.names.index("beagle")
    place = run.clusters.schema.get_field_index("name")
    names = ["Rex zwrtkx" if number == beagle else name for number, name in enumerate(run.names)]
    again = open_run(run.directory)
    again.__dict__["clusters"] = run.clusters.set_column(place, "name", pa.array(names))
    assert again.tree.paths()[beagle][-1] == "Rex zwrtkx"
    # Nobody knows what is above such a name.
    (parent,) = (child for child in again.tree.children if beagle in child.clusters)
    assert parent.synset is None
    assert "Rex zwrtkx" in parent.name


def test_edits_do_not_move_groups_in_the_tree(plain):
    before = {c: node for node in plain.tree.children for c in node.clusters}
    sizes = np.bincount(plain.labels)
    near = before[0].clusters[1]
    plain.merge([0, near])
    assert sorted(plain.tree.clusters) == sorted(set(range(8)) - {near})
    rows = np.flatnonzero(plain.labels == 0)
    plain.move(rows[:20].tolist(), "a few")
    plain.set_aside(rows[20:25].tolist())
    assert plain.tree.size == 235
    assert len(plain.tree.children) == 2
    (parent,) = (node for node in plain.tree.children if 0 in node.clusters)
    assert set(parent.clusters) == {*before[0].clusters, 8} - {near}
    assert parent.size == sizes[list(before[0].clusters)].sum() - 5
    for _ in range(3):
        plain.undo()
    assert plain.tree == open_run(plain.directory).computed.tree


@pytest.mark.parametrize(
    ("n_clusters", "levels", "message"),
    [
        ([2, 0], None, "whole number of at least 1; got 0"),
        ([], None, "has no numbers"),
        ([2, 4], [2], "leave `levels` out"),
        (4, [4], "must be smaller than the number of clusters, 4; got 4"),
        (4, ["two"], "whole number"),
    ],
)
def test_wrong_numbers_of_groups_are_refused(tmp_path, n_clusters, levels, message):
    with pytest.raises(ParameterError, match=message):
        cluster_images(tmp_path, n_clusters, levels=levels)
