"""New images arrive, and nothing that was decided is lost."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut import cluster_images, open_run, predict_images, update_run
from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError, ModelError
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.check import check_run
from nouncut.runs.file_changes import match_files
from nouncut.runs.growing import join_by_name
from nouncut.runs.unfamiliar import (
    find_unfamiliar,
    loosest_group,
    propose_groups,
    take_along,
    why_recluster,
)
from nouncut.words.cluster_names import ClusterName


@pytest.fixture
def cluster(tiny_clip, store, words, tmp_path):
    def run(paths, n_clusters=3, **options):
        defaults = {"model": tiny_clip, "store": store, "vocabulary": words, "compare": "looks"}
        output = {"output": tmp_path / "run"}
        return cluster_images(paths, n_clusters, **(defaults | output | options))

    return run


@pytest.fixture
def update(store, tmp_path):
    def run(*paths, **options):
        return update_run(tmp_path / "run", paths, store=store, **options)

    return run


def state_of(directory):
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "run.lock"]
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def groups_of(run):
    """Return the group of every image by its file name."""
    return dict(zip((path.name for path in run.paths()), run.labels.tolist(), strict=True))


def stripes(folder, numbers):
    for number in numbers:
        pixels = np.random.default_rng(number).integers(0, 60, (24, 32, 3), dtype=np.uint8)
        pixels[:, ::4] = 255
        Image.fromarray(pixels).save(folder / f"stripes {number}.png")


def test_nothing_new_changes_nothing(cluster, update, draw):
    run = cluster(draw(range(12)))
    run.merge([0, 1])
    state = state_of(run.directory)
    found = update()
    assert not found.changes
    assert str(found.changes) == "Nothing changed."
    assert found.run.manifest == run.manifest
    assert state_of(run.directory) == state


def test_new_images_join_the_groups_that_predict_names(cluster, update, draw, store, tmp_path):
    run = cluster(draw(range(24)))
    run.rename(1, "mine")
    before, names, numbers = groups_of(run), run.names_by_cluster, run.labels
    draw(range(24, 36))
    new = [tmp_path / "photos" / f"{number}.png" for number in range(24, 36)]
    expected = predict_images(run, new, store=store).table
    found = update()
    assert (found.changes.n_new, found.changes.n_gone, found.changes.n_moved) == (12, 0, 0)
    after = groups_of(found.run)
    assert {name: after[name] for name in before} == before
    assert [after[path.name] for path in new] == expected["cluster"].to_pylist()
    assert found.run.names_by_cluster == names
    assert found.run.labels[:24].tolist() == numbers.tolist()
    sizes = dict(zip(*found.run.clusters.select(["cluster", "size"]), strict=True))
    assert {n.as_py(): size.as_py() for n, size in sizes.items()} == dict(
        zip(*np.unique(found.run.labels, return_counts=True), strict=True)
    )
    grown = {one.cluster: one.after - one.before for one in found.changes.groups}
    assert sum(grown.values()) == 12
    # The same labels again from the directory, and a sound run.
    assert groups_of(open_run(run.directory)) == after
    assert check_run(run.directory).problems == []


def test_every_reader_opens_an_updated_run(cluster, update, draw, store, tmp_path):
    cluster(draw(range(18)))
    draw(range(18, 27))
    run = update().run
    graph, points = run.graph(), run.map()
    assert graph.shape == (27, 27)
    assert abs(graph - graph.T).max() < 1e-12
    assert np.diff(graph.indptr)[18:].min() > 0
    assert points.shape == (27, 2)
    assert ((points >= 0) & (points <= 1)).all()
    for row in range(18, 27):
        members = np.flatnonzero(run.labels[:18] == run.labels[row])
        low, high = points[members].min(axis=0), points[members].max(axis=0)
        assert (points[row] >= low - 0.2).all()
        assert (points[row] <= high + 0.2).all()
    explained = run.explain(run.paths()[20])
    assert explained.row == 20
    assert explained.chosen.nearest
    assert run.tree.size == 27
    assert len(run.search(like=26)) > 0
    table = predict_images(run, run.paths(), store=store).table
    assert table["cluster"].to_pylist() == run.labels.tolist()
    largest = run.clusters["cluster"][0].as_py()
    run.split(largest, 2)
    assert run.report.is_file()


def test_two_updates_give_the_groups_of_one(cluster, update, draw, store, tmp_path):
    cluster(draw(range(18)))
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    draw(range(18, 24))
    update()
    draw(range(24, 33))
    twice = update().run
    once = update_run(tmp_path / "other", store=store).run
    assert groups_of(twice) == groups_of(once)
    assert twice.names_by_cluster == once.names_by_cluster
    assert twice.array("placed").tolist() == once.array("placed").tolist() == list(range(18, 33))
    outliers = [run.assignments["outlier"].to_pylist() for run in (once, twice)]
    assert outliers[0] == outliers[1]


def test_edits_survive_and_can_be_undone(cluster, update, draw, tmp_path):
    run = cluster(draw(range(24)))
    first = groups_of(run)
    run.rename(2, "mine")
    run.merge([0, 1])
    run.move([3, 4], "new")
    run.set_aside([5])
    run.split(0, 2)
    run.set_aside([6])
    run.undo()
    before = groups_of(run)
    draw(range(24, 30))
    (tmp_path / "photos" / "00.png").unlink()
    found = update()
    after = groups_of(found.run)
    del before["00.png"]
    assert {name: after[name] for name in before} == before
    assert (found.changes.n_edits_kept, found.changes.edits_dropped) == (5, [])
    assert found.run.names_by_cluster[2] == "mine"
    for _ in range(5):
        found.run.undo()
    undone = groups_of(found.run)
    assert {name: undone[name] for name in before} == {name: first[name] for name in before}
    with pytest.raises(InputError, match="nothing to undo"):
        found.run.undo()


def test_new_images_follow_a_split_and_a_group_that_was_set_aside(cluster, update, draw):
    run = cluster(draw(range(24)))
    run.split(0, 2)
    part = np.flatnonzero(run.labels == 3)
    run.set_aside(np.flatnonzero(run.labels == 1).tolist())
    # Copies are as near to their originals as can be.
    folder = run.paths()[0].parent
    copied = [int(part[0]), int(np.flatnonzero(run.labels == 0)[0])]
    aside = int(np.flatnonzero(run.labels < 0)[0])
    for row in (*copied, aside):
        shutil.copy(run.paths()[row], folder / f"copy of {row}.png")
    after = groups_of(update().run)
    assert [after[f"copy of {row}.png"] for row in copied] == [3, 0]
    assert after[f"copy of {aside}.png"] == -1


def test_images_that_are_gone_leave_and_renamed_ones_stay(cluster, update, draw):
    run = cluster(draw(range(18)))
    run.move([4], 0)
    folder, before = run.paths()[0].parent, groups_of(run)
    (folder / "07.png").unlink()
    (folder / "04.png").rename(folder / "another name.png")
    rng = np.random.default_rng(99)
    Image.fromarray(rng.integers(0, 255, (9, 9, 3), np.uint8)).save(folder / "09.png")
    found = update()
    changes, after = found.changes, groups_of(found.run)
    assert (changes.n_new, changes.n_gone, changes.n_changed, changes.n_renamed) == (1, 2, 1, 1)
    assert str(changes).startswith("1 image is gone, 1 image has changed, 1 image was renamed.")
    assert "07.png" not in after
    assert after.pop("another name.png") == before.pop("04.png")
    for name in ("07.png", "09.png"):
        before.pop(name)
    assert {name: after[name] for name in before} == before
    assert check_run(run.directory).problems == []


def test_a_copy_takes_the_place_of_an_original_that_is_gone(cluster, update, draw):
    folder = draw(range(12))
    shutil.copy(folder / "03.png", folder / "99.png")
    run = cluster(folder)
    row = [path.name for path in run.paths()].index("03.png")
    edges, n_cut = np.diff(run.graph().indptr)[row], len(run.array("model_images"))
    (folder / "03.png").unlink()
    after = update().run
    assert groups_of(after)["99.png"] == groups_of(run)["03.png"]
    assert np.diff(after.graph().indptr)[-1] == edges - 1
    assert len(after.array("model_images")) == n_cut


def test_a_group_whose_images_are_all_gone_is_hidden(cluster, update, draw):
    run = cluster(draw(range(18)))
    run.rename(1, "mine")
    run.merge([2, 0])
    run.undo()
    names = run.names_by_cluster
    for path, label in zip(run.paths(), run.labels, strict=True):
        if label == 1:
            path.unlink()
    found = update()
    assert [(one.name, one.after) for one in found.changes.groups] == [("mine", 0)]
    assert found.run.names_by_cluster == {n: name for n, name in names.items() if n != 1}
    assert sorted(found.run.clusters["cluster"].to_pylist()) == [0, 2]
    assert "Groups that are gone" in str(found.changes)
    assert found.run.tree.clusters
    found.run.merge([2, 0])
    assert found.run.names_by_cluster == {2: names[2]}
    found.run.move([0], "new")
    assert set(found.run.names_by_cluster) == {2, 3}
    assert check_run(run.directory).problems == []


def test_a_folder_that_is_not_there_ends_no_group(cluster, update, draw, tmp_path):
    run = cluster(draw(range(12)))
    more = tmp_path / "more"
    more.mkdir()
    draw(range(12, 15))
    for number in range(12, 15):
        (tmp_path / "photos" / f"{number}.png").rename(more / f"{number}.png")
    found = update(more)
    assert found.run.manifest["source"] == [str(tmp_path / "photos"), str(more)]
    assert found.changes.n_new == 3
    assert not update(more).changes
    shutil.move(more, tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"more does not exist.* drive"):
        update()
    more.mkdir()
    with pytest.raises(InputError, match=r"more held 3 images .*`allow_missing=True`"):
        update()
    with pytest.raises(InputError, match=r"more held 3 images"):
        update(recluster=True)
    assert len(open_run(run.directory).labels) == 15
    more.rmdir()
    assert update(allow_missing=True).changes.n_gone == 3
    assert len(open_run(run.directory).labels) == 12


def test_a_dry_run_says_the_same_and_writes_nothing(cluster, update, draw):
    run = cluster(draw(range(12)))
    draw(range(12, 16))
    state = state_of(run.directory)
    dry = update(dry_run=True)
    assert state_of(run.directory) == state
    assert (len(dry.run.labels), dry.changes.n_new) == (12, 4)
    assert update().changes == dry.changes
    draw(range(16, 19))
    dry = update(dry_run=True, recluster=True)
    assert len(open_run(run.directory).labels) == 16
    assert update(recluster=True).changes == dry.changes


def test_broken_files_are_no_news(cluster, update, draw):
    run = cluster(draw(range(12)))
    state = state_of(run.directory)
    (run.paths()[0].parent / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    assert not update().changes
    assert state_of(run.directory) == state
    draw(range(12, 14))
    found = update()
    assert found.changes.n_new == 2
    assert [file.path.name for file in found.run.skipped] == ["broken.png"]


def test_unfamiliar_images_are_proposed_as_a_group_and_made_one(cluster, update, draw):
    run = cluster(draw(range(30)))
    folder = run.paths()[0].parent
    stripes(folder, range(8))
    draw(range(30, 33))
    dry = update(dry_run=True).changes
    (proposal,) = dry.proposals
    assert (proposal.n_images, proposal.made) == (8, False)
    assert all("stripes" in path for path in proposal.paths)
    assert dry.n_unfamiliar >= 6
    assert f'8 images look like a group of their own, "{proposal.name}"' in str(dry)
    assert "Clustering again is worthwhile" in str(dry)
    found = update(new_groups=True)
    names = found.run.names_by_cluster
    assert names[3] == proposal.name
    after = groups_of(found.run)
    assert {name for name, group in after.items() if group == 3} == {
        f"stripes {number}.png" for number in range(8)
    }
    assert found.changes.proposals[0].made
    assert not found.run.assignments["outlier"].to_numpy()[after_rows(found.run, 3)].any()
    # More of the kind join it; it outlives clustering again; it can be undone.
    stripes(folder, range(8, 10))
    again = update().run
    assert [groups_of(again)[f"stripes {n}.png"] for n in (8, 9)] == [3, 3]
    anew = update(recluster=True).run
    where = {groups_of(anew)[f"stripes {n}.png"] for n in range(10)}
    assert len(where) == 1
    assert {groups_of(anew)[f"{n:02}.png"] for n in range(30)}.isdisjoint(where)
    again = open_run(anew.directory)
    if again.edits:
        again.undo()


def after_rows(run, number):
    return np.flatnonzero(run.labels == number)


def test_clustering_again_keeps_numbers_names_and_edits(cluster, update, draw, tmp_path):
    run = cluster(draw(range(30)))
    run.rename(2, "mine")
    run.set_aside([5])
    run.merge([0, 1])
    before = groups_of(run)
    draw(range(30, 32))
    found = update(recluster=True)
    changes, after = found.changes, groups_of(found.run)
    assert changes.reclustered
    assert (changes.n_new, changes.n_gone, changes.n_edits_kept) == (2, 0, 2)
    same = [name for name in before if after[name] == before[name]]
    assert len(same) == len(before) - changes.n_moved >= 28
    assert found.run.names_by_cluster[2] == "mine"
    # The command that made the run says the same.
    draw(range(32, 34))
    again = cluster(tmp_path / "photos")
    assert again.manifest["changes"]["n_new"] == 2
    assert again.manifest["changes"]["reclustered"]
    assert again.names_by_cluster.keys() == found.run.names_by_cluster.keys()


def test_clusters_keep_their_numbers_when_others_outgrow_them(cluster, draw, tmp_path):
    run = cluster(draw(range(18)), vocabulary=("red", "green", "blue"))
    before = groups_of(run)
    smallest = run.clusters["cluster"][-1].as_py()
    name = next(name for name, group in before.items() if group == smallest)
    kind = int(name[:2]) % 3
    draw(range(18 + (kind - 18) % 3, 60, 3))
    after = groups_of(cluster(tmp_path / "photos", vocabulary=("red", "green", "blue")))
    assert {name: after[name] for name in before} == before


def test_runs_that_cannot_be_updated_say_why(cluster, update, draw, tmp_path, seal, store):
    with pytest.raises(InputError, match="is not a run"):
        update()
    assert not (tmp_path / "run").exists()
    run = cluster(draw(range(9)))
    draw(range(9, 11))
    seal(run.directory, model=run.manifest["model"] | {"fingerprint": "another"})
    with pytest.raises(InputError, match="another version of"):
        update()
    np.save(tmp_path / "clip.npy", make_clip_like(60, 3, random_state=0).features)
    cluster_images(tmp_path / "clip.npy", 3, output=tmp_path / "features")
    with pytest.raises(InputError, match="from a file of features"):
        update_run(tmp_path / "features", store=store)


def test_a_model_that_is_gone_is_named(cluster, update, draw, tiny_clip, tmp_path):
    model = shutil.copytree(tiny_clip, tmp_path / "my model")
    run = cluster(draw(range(9)), model=str(model))
    shutil.rmtree(model)
    assert not update().changes
    draw(range(9, 11))
    with pytest.raises(ModelError, match="my model"):
        update()
    assert len(open_run(run.directory).labels) == 9


def test_few_images_that_are_left_are_not_enough(cluster, update, draw):
    run = cluster(draw(range(9)))
    for path in run.paths()[2:]:
        path.unlink()
    with pytest.raises(InputError, match="Hardly any image"):
        update()
    assert len(open_run(run.directory).labels) == 9


@given(st.data())
def test_files_are_matched_once_each(data):
    letters = st.lists(st.sampled_from("abcd"), max_size=8)
    old, new = data.draw(letters), data.draw(letters)
    paths = [str(n) for n in range(8)]
    old_paths = data.draw(st.permutations(paths))[: len(old)]
    new_paths = data.draw(st.permutations(paths))[: len(new)]
    found = match_files(old, old_paths, new, new_paths)
    assert sorted([*found.kept, *found.gone]) == list(range(len(old)))
    assert sorted([*found.files, *found.new]) == list(range(len(new)))
    assert [old[row] for row in found.kept] == [new[number] for number in found.files]
    # No content is both gone and new.
    assert {old[row] for row in found.gone}.isdisjoint(new[number] for number in found.new)
    same = set(zip(old, old_paths, strict=True)) & set(zip(new, new_paths, strict=True))
    assert found.n_renamed == len(found.kept) - len(same)
    assert {new_paths[n] for n in found.changed} == {new_paths[n] for n in found.new} & {
        old_paths[row] for row in found.gone
    }


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_unfamiliar_kinds_are_found_and_told_apart(seed, n_unseen):
    rng = np.random.default_rng(seed)
    centers = np.linalg.qr(rng.normal(size=(32, 32)))[0]
    kinds = np.repeat(np.arange(4 + n_unseen), 20)
    looks = unit_rows(centers[kinds] + 0.05 * rng.normal(size=(len(kinds), 32)))
    known, new = np.flatnonzero(kinds < 4), np.flatnonzero(kinds >= 4)
    loosest = loosest_group(looks[known], kinds[known])
    unfamiliar = find_unfamiliar(looks, known, new, least=0.6)
    assert unfamiliar.tolist() == new.tolist()
    groups = propose_groups(looks, unfamiliar[::2], 0.9 * loosest)
    assert len(groups) == n_unseen
    labels = np.where(kinds < 4, kinds, 0)
    others = np.setdiff1d(new, np.concatenate(groups))
    grown = take_along(looks, groups, others, known, labels)
    assert sorted(kinds[rows].tolist() for rows in grown) == [[4 + n] * 20 for n in range(n_unseen)]
    assert find_unfamiliar(looks, new, new, least=0.6).tolist() == []


def test_clustering_again_is_advised_by_more_than_chance():
    assert why_recluster(5, 100, 1000) == ""
    assert why_recluster(16, 100, 1000) == ""
    assert "about 5 would be usual" in why_recluster(17, 100, 1000)
    assert why_recluster(4, 4, 1000) == ""
    assert "without 40 of 100 images" in why_recluster(0, 40, 60)


def test_links_and_odd_names_are_kept_apart(cluster, update, draw):
    folder = draw(range(12))
    odd = os.fsencode(folder) + b"/odd \xe9.png"
    shutil.copy(folder / "05.png", odd)
    run = cluster(folder)
    assert not update().changes
    draw(range(12, 13))
    after = update().run
    assert after.paths()[: len(run.labels)] == run.paths()


def test_proposals_of_one_name_are_one_group():
    rows = [np.array([n, n + 10]) for n in range(6)]
    names = [
        ClusterName("golf ball", ("ball",), "", 0.9),
        ClusterName("golf ball 2", (), "", 0.9),
        ClusterName("church", ("chapel",), "", 0.9),
        ClusterName("like dog", (), "", 0.4, guess=True),
        ClusterName("group 7", (), "", 0.0),
        ClusterName("group 8", (), "", 0.0),
    ]
    joined, found = join_by_name(rows, names, ["Church", "group 7"])
    assert found == ["golf ball", "chapel", "like dog", "group 2", "group 8"]
    assert joined[0].tolist() == [0, 1, 10, 11]
    assert [len(one) for one in joined] == [4, 2, 2, 2, 2]
