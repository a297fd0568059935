"""Edits of an earlier run, applied to a new one."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut.runs.carried_edits import NewImages, carry_edits
from nouncut.runs.edits import EditedGroups
from nouncut.runs.matching import run_identities

N_IMAGES = 24


@pytest.fixture
def carry(small_run):
    """Return a function that carries the edits of the small run to some of its images."""

    def run(rows=range(N_IMAGES), labels=None, rename=lambda path: path):
        rows, ids = np.array(rows), run_identities(small_run)
        paths = [str(path) for path in small_run.images["path"].to_pylist()]
        images = NewImages([ids[row] for row in rows], [rename(paths[row]) for row in rows])
        labels = small_run.computed.labels[rows] if labels is None else np.array(labels)
        names = [f"name {cluster}" for cluster in range(int(labels.max()) + 1)]
        groups = EditedGroups.computed(labels, names)
        return carry_edits(small_run, ids, images, groups), groups

    return run


def test_the_same_images_get_the_same_groups(small_run, carry):
    small_run.merge([0, 2])
    small_run.split(0, 2)
    small_run.move([0, 1], "new")
    small_run.move([2], 4)
    small_run.set_aside([3])
    small_run.undo()
    small_run.set_aside([4])
    carried, groups = carry()
    assert groups.labels.tolist() == small_run.labels.tolist()
    assert (len(carried.kept), carried.dropped) == (5, [])
    # In another order, with other names of files and other numbers of clusters.
    order = np.random.default_rng(0).permutation(N_IMAGES)
    numbers = np.array([1, 2, 0])[small_run.computed.labels[order]]
    _, groups = carry(order, numbers, rename=lambda path: f"/elsewhere/{path}")
    pairs = set(zip(groups.labels.tolist(), small_run.labels[order].tolist(), strict=True))
    assert len(pairs) == len(set(groups.labels.tolist())) == len(set(small_run.labels.tolist()))


def test_edits_without_their_images_are_dropped_and_told(small_run, carry):
    small_run.set_aside([0, 1])
    small_run.set_aside([2])
    small_run.move([3, 4], "gone")
    small_run.move([5], 3)
    carried, groups = carry([0, *range(5, N_IMAGES)])
    assert len(carried.kept) == 1
    assert carried.dropped == [small_run.history[n].text for n in (1, 2, 3)]
    assert np.flatnonzero(groups.labels < 0).tolist() == [0]
    with pytest.warns(UserWarning, match=r"were dropped: set aside 1 image; move 2 images to the"):
        carried.warn()


def test_groups_stay_apart_unless_a_new_run_has_them_as_one(small_run, carry):
    small_run.keep_apart([0, 2])
    small_run.keep_apart([0, 1])
    labels = np.array([2, 1, 1])[small_run.computed.labels]
    carried, groups = carry(labels=np.concatenate([labels[:-1], [0]]))
    assert groups.apart == {frozenset({1, 2})}
    assert (len(carried.kept), carried.dropped) == (2, [])
    carried, groups = carry(labels=np.minimum(small_run.computed.labels, 1) * 0)
    assert groups.apart == set()
    assert len(carried.dropped) == 2


def test_groups_that_a_new_run_has_as_one_need_no_merge(small_run, carry):
    small_run.merge([0, 1])
    labels = np.where(small_run.computed.labels == 2, 1, 0)
    carried, groups = carry(labels=labels)
    assert (carried.kept, carried.dropped) == ([], [])
    assert np.array_equal(groups.labels, labels)


def test_a_split_divides_only_what_is_still_together(small_run, carry):
    small_run.merge([0, 1])
    small_run.split(0, 2)
    part = np.flatnonzero(small_run.labels == 3)
    labels = small_run.computed.labels.copy()
    labels[part[:2]] = 2
    carried, groups = carry(labels=labels)
    assert len(carried.kept) == 2
    assert groups.labels[part].tolist() == [2, 2] + [3] * (len(part) - 2)


def test_an_edit_of_one_copy_stays_with_its_file(tmp_path, make_run):
    run = make_run(tmp_path / "run")
    ids, paths = ["same", "same", "c"], ["a", "b", "c"]
    groups = EditedGroups.computed(np.array([0, 0, 1]), ["x", "y"])
    old = [str(row) for row in range(N_IMAGES)]
    old[0] = old[1] = "same"
    own = run.images["path"].to_pylist()
    run.set_aside([1])
    carry_edits(run, old, NewImages(ids, [own[0], own[1], "c"]), groups)
    assert groups.labels.tolist() == [0, -1, 1]
    groups = EditedGroups.computed(np.array([0, 0, 1]), ["x", "y"])
    carry_edits(run, old, NewImages(ids, paths), groups)
    assert groups.labels.tolist() == [-1, -1, 1]
