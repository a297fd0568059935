"""Clusters matched with those of the run before, and the names that they keep."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut import cluster_images
from nouncut.method.count import ClusterCount
from nouncut.runs.edit_log import EDITS
from nouncut.runs.editing import edit_run, plan_rename
from nouncut.runs.matching import Match, keep_computed, match_clusters
from nouncut.runs.renames import describe_kept
from nouncut.runs.run import open_run
from nouncut.words.cluster_names import ClusterName


def named(*names):
    return [ClusterName(name, ("more",), f"gloss of {name}", 1.0) for name in names]


def rows(*names):
    return [{"name": n, "more_words": ["old"], "gloss": f"earlier {n}"} for n in names]


labelled = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=40)


@given(labelled, labelled)
def test_matches_share_more_than_half_of_both_and_are_unique(earlier, new):
    # Copies of an image share its cluster.
    earlier, new = list(dict(earlier).items()), list(dict(new).items())
    ids = [[str(image) for image, _ in part] for part in (earlier, new)]
    labels = [np.array([label for _, label in part]) for part in (earlier, new)]
    found = match_clusters(ids[0], labels[0], ids[1], labels[1])
    for a in range(5):
        for b in range(5):
            old = {image for image, label in earlier if label == a}
            now = {image for image, label in new if label == b}
            is_match = 2 * len(old & now) > max(len(old), len(now))
            assert (b in found and found[b].earlier == a) == is_match
            if is_match:
                assert found[b].overlap == pytest.approx(len(old & now) / len(old | now))
    assert len({match.earlier for match in found.values()}) == len(found)


def test_copies_count_once():
    ids = ["a"] * 50 + ["b", "c", "d"]
    found = match_clusters(ids, np.array([0] * 50 + [1] * 3), ["a", "b", "c"], np.array([0, 0, 0]))
    assert found == {0: Match(1, 0.5)}


def test_a_matched_cluster_keeps_its_name_with_all_that_belongs_to_it():
    kept = keep_computed(named("bloom", "car"), rows("car", "flower"), {0: Match(1, 0.95)})
    assert kept[0] == ClusterName("flower", ("old",), "earlier flower", 1.0)
    assert kept[1].gloss == "gloss of car"


@pytest.mark.parametrize(
    ("earlier", "new", "overlap", "stays"),
    [
        ("teapot", "dog", 0.95, True),
        ("teapot", "dog", 0.6, True),
        ("canine", "dog", 0.6, True),
        ("poodle", "dog", 0.6, True),
        ("dog (like poodle)", "canine (like pug)", 0.6, True),
        ("more", "dog", 0.6, True),
        ("cluster 3", "dog", 1.0, False),
        ("group 3", "dog", 1.0, False),
    ],
)
def test_names_that_still_fit_stay(earlier, new, overlap, stays):
    (kept,) = keep_computed(named(new), rows(earlier), {0: Match(0, overlap)})
    assert kept.name == (earlier if stays else new)


def sure(confidence, name, overlap):
    """Return the name of a cluster called "dog" now that was surely called something else."""
    earlier = rows(name)[0] | {"name_confidence": confidence}
    (kept,) = keep_computed([now(0.6)], [earlier], {0: Match(0, overlap)})
    return kept


@dataclass(frozen=True)
class Sure(ClusterName):
    confidence: float = 0.0
    guess: bool = False


def now(confidence, guess=False):
    return replace(Sure("dog", (), "", 0.0), confidence=confidence, guess=guess)


def test_of_two_names_the_surer_one_stays_if_the_images_have_changed():
    assert sure(0.7, "teapot", 0.6).name == "teapot"
    assert sure(0.7, "teapot", 0.6).confidence == 0.7
    assert sure(0.5, "teapot", 0.6).name == "dog"
    assert sure(0.5, "teapot", 0.95).name == "teapot"


@pytest.mark.parametrize(("now_guess", "stays"), [(True, True), (False, False)])
def test_a_guess_stays_only_where_there_is_nothing_better(now_guess, stays):
    earlier = rows("teapot")[0] | {"guess": True}
    (kept,) = keep_computed([now(0.6, now_guess)], [earlier], {0: Match(0, 1.0)})
    assert kept.name == ("teapot" if stays else "dog")


def test_a_name_that_another_cluster_has_now_is_given_up_if_the_images_have_changed():
    matches = {0: Match(0, 0.7), 1: Match(1, 0.7)}
    kept = keep_computed(named("b", "c", "A"), rows("a", "b"), matches)
    # The third is called "A" now; so the first is "b" again, and the second must give that up.
    assert [name.name for name in kept] == ["b", "c", "A"]
    swapped = keep_computed(named("b", "a"), rows("a", "b"), matches)
    assert [name.name for name in swapped] == ["a", "b"]


def test_a_new_name_gives_way_to_that_of_an_unchanged_cluster():
    kept = keep_computed(named("b", "A", "a"), rows("a"), {0: Match(0, 0.95)})
    assert [name.name for name in kept] == ["a", "more", "a 2"]


@given(
    st.permutations("abcdef"),
    st.permutations("abcdefgh"),
    st.lists(st.integers(-1, 7), min_size=6, max_size=6),
    st.lists(st.sampled_from([0.6, 1.0]), min_size=6, max_size=6),
)
def test_names_stay_distinct(new, earlier, chosen, overlaps):
    matches = {}
    for cluster, old in enumerate(chosen):
        if old >= 0 and old not in {match.earlier for match in matches.values()}:
            matches[cluster] = Match(old, overlaps[cluster])
    kept = keep_computed(named(*new), rows(*earlier), matches)
    assert len({name.name for name in kept}) == 6


@pytest.fixture
def cluster(tiny_clip, store, words, tmp_path):
    def run(n_clusters=3, **options):
        return cluster_images(
            tmp_path / "photos",
            n_clusters,
            model=tiny_clip,
            store=store,
            vocabulary=words,
            compare="looks",
            output=tmp_path / "run",
            **options,
        )

    return run


def rename(run, names):
    edit_run(run, plan_rename(names))
    return open_run(run.directory)


def paths_by_name(run):
    found = {}
    for path, name in zip(run.paths(), run.assignments["name"].to_pylist(), strict=True):
        found.setdefault(name, set()).add(path.name)
    return found


def test_given_names_survive_a_photo_more(cluster, draw):
    draw(range(24))
    first = rename(cluster(), {0: "My reds", 2: "Sea \N{WATER WAVE}"})
    before = paths_by_name(first)
    draw(range(24, 25))
    again = cluster()
    assert again.manifest["id"] != first.manifest["id"]
    after = paths_by_name(again)
    assert before["My reds"] <= after["My reds"]
    assert before["Sea \N{WATER WAVE}"] <= after["Sea \N{WATER WAVE}"]
    head = json.loads((again.directory / EDITS).read_text().splitlines()[0])
    assert head["run"] == again.manifest["id"]
    assert open_run(again.directory).names == again.names
    (kept,) = again.history
    assert kept.text == 'keep the names "My reds", "Sea \N{WATER WAVE}"'
    assert kept.n_images == len(after["My reds"]) + len(after["Sea \N{WATER WAVE}"])
    assert describe_kept(again.manifest) == (
        "3 groups match those of the run before; 2 names that you gave were kept."
    )


def test_computed_names_stay_when_a_photo_is_added(cluster, draw):
    draw(range(24))
    before = paths_by_name(cluster())
    draw(range(24, 25))
    again = cluster()
    assert set(paths_by_name(again)) == set(before)
    assert again.manifest["earlier_run"]["n_names_kept"] == 3


def test_a_name_without_a_cluster_is_said_kept_and_comes_back(cluster, draw, tmp_path):
    draw(range(24))
    first = cluster()
    label = first.labels[0]
    first = rename(first, {int(label): "Reds"})
    reds = paths_by_name(first)["Reds"]
    for name in reds:
        (tmp_path / "photos" / name).rename(tmp_path / name)
    without = cluster(2, replace=True)
    assert "Reds" not in without.names
    assert any('"Reds"' in warning for warning in without.manifest["warnings"])
    assert [one["name"] for one in without.manifest["unmatched_names"]] == ["Reds"]
    for name in reds:
        (tmp_path / name).rename(tmp_path / "photos" / name)
    again = cluster(replace=True)
    assert paths_by_name(again)["Reds"] == reds
    assert "unmatched_names" not in again.manifest


def test_damaged_edits_are_set_aside_and_told(cluster, draw):
    draw(range(24))
    log = rename(cluster(), {0: "mine"}).directory / EDITS
    damaged = log.read_bytes().replace(b"mine", b"Mine")
    log.write_bytes(damaged)
    again = cluster()
    assert any("earlier-edits.jsonl" in warning for warning in again.manifest["warnings"])
    assert log.with_name("earlier-edits.jsonl").read_bytes() == damaged
    assert again.edits == ()


def test_a_merged_cluster_has_one_of_two_given_names(cluster, draw):
    draw(range(24))
    before = paths_by_name(rename(cluster(), {0: "one", 1: "two", 2: "three"}))
    merged = cluster(1, replace=True)
    lost = [one["name"] for one in merged.manifest["unmatched_names"]]
    assert sorted([*merged.names, *lost]) == ["one", "three", "two"]
    split = cluster(3, replace=True)
    assert paths_by_name(split) == before


def test_a_split_cluster_keeps_its_name_once(cluster, draw):
    draw(range(24))
    rename(cluster(1), {0: "all"})
    split = cluster(3, replace=True)
    assert split.names.count("all") == 1


def test_features_without_hashes_match_by_row(tmp_path, store):
    features = np.repeat(np.eye(3, 8, dtype=np.float32), 20, axis=0)
    features += np.random.default_rng(0).normal(scale=0.05, size=features.shape)
    file = tmp_path / "features.npy"
    np.save(file, features)
    run = cluster_images(file, 3, store=store, output=tmp_path / "run")
    rename(run, {int(run.labels[0]): "first twenty"})
    np.save(file, features[:-1])
    again = cluster_images(file, 3, store=store, output=tmp_path / "run")
    assert again.names[again.labels[0]] == "first twenty"


def test_the_number_of_clusters_stays_while_the_images_do(cluster, draw, tmp_path, monkeypatch):
    draw(range(30))
    found = iter([(3, (2,)), (2, (3,)), (2, (3,))])

    def count(*arguments, **options):
        best, others = next(found)
        return ClusterCount(best, tuple((n, 0.5) for n in (best, *others)), 0.5)

    monkeypatch.setattr("nouncut.runs.grouping.count_groups", count)
    assert len(cluster("auto").names) == 3
    draw(range(30, 31))
    assert len(cluster("auto").names) == 3
    draw(range(31, 50))
    assert len(cluster("auto").names) == 2
