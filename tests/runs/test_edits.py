"""Edits of groups: what each does, undoing, and the same result for every reader."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nouncut.errors import InputError, ParameterError
from nouncut.runs.edit_log import EDITS, LoggedEdit
from nouncut.runs.editing import edit_run, plan_split
from nouncut.runs.edits import (
    EditedGroups,
    Replay,
    checked_edit,
    plain_edit,
    replay,
    undo_stacks,
)
from nouncut.runs.grown_edits import Arrivals, grow_edits
from nouncut.runs.run import open_run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter

N_IMAGES, N_CLUSTERS = 12, 4
LABELS = np.arange(N_IMAGES) % N_CLUSTERS


def computed():
    return EditedGroups.computed(LABELS, [f"name {c}" for c in range(N_CLUSTERS)])


def state(groups):
    return (
        groups.labels.tolist(),
        groups.names,
        groups.next_number,
        groups.successors,
        groups.by_hand.tolist(),
        groups.given,
        groups.apart,
        groups.found,
    )


@st.composite
def sequences(draw):
    """Return edits that all fit the groups when they are made, with undo and redo among them."""
    edits = []
    for _ in range(draw(st.integers(0, 12))):
        groups = replay(computed(), edits)
        done, undone = undo_stacks(edits)
        rows = np.array(sorted(draw(st.sets(st.integers(0, N_IMAGES - 1), min_size=1))))
        numbers = st.sampled_from(sorted(groups.names)) if groups.names else st.nothing()
        large = [n for n in groups.names if len(groups.rows(n)) > 1]
        kinds = ["group", "found", "set aside"] + ["undo"] * bool(done) + ["redo"] * bool(undone)
        kinds += ["rename", "move"] * bool(groups.names) + ["split"] * bool(large)
        kinds += ["merge", "apart"] * (len(groups.names) > 1)
        kind = draw(st.sampled_from(kinds))
        edit = {"kind": kind}
        if kind == "rename":
            edit["names"] = draw(st.dictionaries(numbers, st.text("ab", min_size=1), min_size=1))
        elif kind == "merge":
            edit["clusters"] = draw(st.lists(numbers, min_size=2, unique=True))
        elif kind == "apart":
            edit["clusters"] = draw(st.lists(numbers, min_size=2, max_size=2, unique=True))
        elif kind == "split":
            edit["cluster"] = draw(st.sampled_from(large))
            inside = groups.rows(edit["cluster"])
            cut = draw(st.integers(1, len(inside) - 1))
            edit["parts"] = [{"name": "part", "rows": inside[:cut]}]
        elif kind in ("group", "found"):
            edit["parts"] = [{"name": "new", "rows": rows}]
        elif kind in ("move", "set aside"):
            edit["rows"] = rows
            if kind == "move":
                edit["to"] = draw(numbers)
        edits.append(edit)
    return edits


@settings(deadline=None)
@given(sequences())
def test_any_sequence_of_edits_undone_gives_the_first_state(edits):
    n_done = len(undo_stacks(edits)[0])
    undone = [*edits, *[{"kind": "undo"}] * n_done]
    assert state(replay(computed(), undone)) == state(computed())
    again = [*undone, *[{"kind": "redo"}] * n_done]
    assert state(replay(computed(), again)) == state(replay(computed(), edits))
    with pytest.raises(InputError, match="nothing to undo"):
        replay(computed(), [*undone, {"kind": "undo"}])


@settings(deadline=None)
@given(sequences(), st.data())
def test_going_on_from_an_earlier_state_gives_the_same_groups(edits, data):
    logged = [LoggedEdit(edit, "", "", 0) for edit in edits]
    replayed = Replay(computed())
    for length in data.draw(st.lists(st.integers(0, len(edits)))):
        expected = state(replay(computed(), edits[:length]))
        assert state(replayed(logged[:length])) == expected
        # Another log with the same edits has nothing in common with this one.
        others = [LoggedEdit(edit, "", "", 0) for edit in edits[:length]]
        assert state(replayed(others)) == expected


@settings(deadline=None)
@given(sequences())
def test_groups_are_consistent_after_any_edits(edits):
    groups = replay(computed(), edits)
    assert set(groups.labels.tolist()) - {-1} == set(groups.names)
    assert groups.given | groups.found <= set(groups.names)
    assert all(len(pair) == 2 and pair <= set(groups.names) for pair in groups.apart)
    assert max(groups.names, default=-1) < groups.next_number
    assert np.all(groups.by_hand[groups.labels < 0])


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    """Return a run of the images and clusters of `computed`."""
    rows = [{"path": f"/{n}", "cluster": c, "name": f"name {c}"} for n, c in enumerate(LABELS)]
    clusters = [
        {"cluster": c, "name": f"name {c}", "size": 3, "exemplars": [], "borderline": []}
        for c in range(N_CLUSTERS)
    ]
    contents = RunContents(
        {},
        pa.Table.from_pylist([row | {"outlier": False} for row in rows], ASSIGNMENTS_SCHEMA),
        pa.Table.from_pylist(clusters, CLUSTERS_SCHEMA),
        images_table([row["path"] for row in rows]),
        {"features": np.random.default_rng(0).normal(size=(N_IMAGES, 3)).astype(np.float32)},
    )
    with RunWriter(tmp_path_factory.mktemp("plain") / "run") as writer:
        return writer.finish(contents)


@settings(deadline=None)
@given(sequences(), st.data())
def test_edits_grow_with_new_images_and_without_those_that_are_gone(plain_run, edits, data):
    run = plain_run.with_edits(tuple(LoggedEdit(edit, "", "text", 0) for edit in edits))
    kept = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=12, max_size=12)))
    labels = np.array(data.draw(st.lists(st.integers(0, N_CLUSTERS - 1), max_size=5)), dtype=int)
    features = np.random.default_rng(1).normal(size=(len(labels), 3))
    originals = np.full(len(labels), -1)
    grown = grow_edits(run, kept, Arrivals(labels, features, originals))
    # Images that are still there are where they were, under the same numbers and names.
    before, after = run.groups, grown.groups.without_empty()
    assert after.labels[: len(kept)].tolist() == before.labels[kept].tolist()
    for number in set(before.labels[kept].tolist()) - {-1}:
        assert after.names[number] == before.names[number]
        assert (number in after.given) == (number in before.given)
    assert after.next_number == before.next_number
    # The log that is written gives these groups, and can be undone edit by edit.
    start = np.concatenate([LABELS[kept], labels]).astype(np.intp)
    first = EditedGroups.computed(start, [f"name {c}" for c in range(N_CLUSTERS)])
    log = [checked_edit(plain_edit(one.edit), len(start)) for one in grown.kept]
    assert state(replay(first, log)) == state(after)
    undone = replay(first, [*log, *[{"kind": "undo"}] * len(log)])
    assert undone.labels.tolist() == start.tolist()
    # A second image like it goes where the first went.
    if len(labels):
        twice = Arrivals(*(np.repeat(part, 2, axis=0) for part in (labels, features, originals)))
        found = grow_edits(run, kept, twice).groups.labels[len(kept) :].tolist()
        assert found[::2] == found[1::2] == after.labels[len(kept) :].tolist()


@settings(deadline=None)
@given(sequences())
def test_an_edit_is_the_same_after_writing_and_reading(edits):
    read = [checked_edit(plain_edit(edit), N_IMAGES) for edit in edits]
    assert [plain_edit(edit) for edit in read] == [plain_edit(edit) for edit in edits]
    assert state(replay(computed(), read)) == state(replay(computed(), edits))


@pytest.mark.parametrize(
    "edit",
    [
        None,
        {"kind": "explode"},
        {"kind": "undo", "rows": [1]},
        {"kind": "merge", "clusters": [1, 1]},
        {"kind": "merge", "clusters": [1, -1]},
        {"kind": "merge", "clusters": [1, 2**40]},
        {"kind": "merge", "clusters": "12"},
        {"kind": "rename", "names": {}},
        {"kind": "rename", "names": {"x": "y"}},
        {"kind": "rename", "names": {"1": " \n"}},
        {"kind": "move", "rows": [], "to": 1},
        {"kind": "move", "rows": [N_IMAGES], "to": 1},
        {"kind": "move", "rows": [2, 1], "to": 1},
        {"kind": "move", "rows": [True], "to": 1},
        {"kind": "move", "rows": [1], "to": 1.0},
        {"kind": "set aside", "rows": [-1]},
        {"kind": "split", "cluster": 1, "parts": []},
        {"kind": "group", "parts": [{"name": "a", "rows": [1]}, {"name": "b", "rows": [1]}]},
        {"kind": "group", "parts": [{"name": "a"}]},
    ],
)
def test_what_is_no_edit_is_refused(edit):
    with pytest.raises(ValueError, match=r"."):
        checked_edit(edit, N_IMAGES)


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "merge", "clusters": [0, 9]},
        {"kind": "merge", "clusters": [0]},
        {"kind": "apart", "clusters": [0]},
        {"kind": "apart", "clusters": [0, 1, 2]},
        {"kind": "apart", "clusters": [0, 9]},
        {"kind": "rename", "names": {9: "x"}},
        {"kind": "move", "rows": np.array([0]), "to": 9},
        {"kind": "split", "cluster": 1, "parts": [{"name": "a", "rows": np.array([0])}]},
    ],
)
def test_what_does_not_fit_the_groups_is_refused(edit):
    with pytest.raises(InputError):
        replay(computed(), [edit])


verbs = st.one_of(
    st.tuples(st.just("merge"), st.lists(st.integers(0, 5), min_size=2, max_size=3)),
    st.tuples(st.just("rename"), st.integers(0, 5), st.text("abc", min_size=1, max_size=2)),
    st.tuples(
        st.just("move"),
        st.lists(st.integers(0, 23), min_size=1),
        st.one_of(st.integers(0, 5), st.text("xyz", min_size=1, max_size=2)),
    ),
    st.tuples(st.just("set_aside"), st.lists(st.integers(0, 23), min_size=1)),
    st.tuples(st.just("split"), st.integers(0, 5), st.integers(2, 3)),
    st.tuples(st.just("keep_apart"), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
    st.tuples(st.sampled_from(["undo", "redo"])),
)


def tables(run):
    return run.assignments, run.clusters


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(verbs, max_size=6))
def test_the_directory_says_what_the_opened_run_says(small_run, calls):
    log = small_run.directory / EDITS
    log.unlink(missing_ok=True)
    run = open_run(small_run.directory)
    for verb, *arguments in calls:
        with suppress(InputError):
            getattr(run, verb)(*arguments)
    again = open_run(run.directory)
    assert again.history == run.history
    for table, read, raw in zip(tables(run), tables(again), tables(run.computed), strict=True):
        assert table.to_pylist() == read.to_pylist()
        assert table.schema == raw.schema
    sizes = {row["cluster"]: row["size"] for row in run.clusters.to_pylist()}
    assert sizes == {number: np.sum(run.labels == number) for number in run.names_by_cluster}
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    for _ in undo_stacks([one.edit for one in run.edits])[0]:
        run.undo()
    assert tables(run) == tables(run.computed)


def test_a_merge_keeps_the_first_group(small_run):
    sizes = small_run.clusters["size"].to_pylist()
    names = small_run.names
    done = small_run.merge([2, 0])
    assert done.n_images == sizes[0]
    assert small_run.names_by_cluster == {2: names[2], 1: names[1]}
    assert np.sum(small_run.labels == 2) == sizes[0] + sizes[2]
    second = small_run.assignments.filter(small_run.labels == 1)["second_cluster"].to_pylist()
    assert set(second) == {2}
    # What spoke for either of two groups speaks for both of them.
    raw = small_run.computed.assignments.to_pylist()
    for row, was in zip(small_run.assignments.to_pylist(), raw, strict=True):
        if (was["cluster"], was["second_cluster"]) == (2, 0):
            assert row["confidence"] == pytest.approx(was["confidence"] + was["second_confidence"])
            assert row["second_cluster"] is row["second_name"] is row["second_confidence"] is None


def test_groups_are_kept_apart_until_they_are_merged(small_run):
    done = small_run.keep_apart([0, 2])
    assert (done.n_images, small_run.groups.apart) == (0, {frozenset({0, 2})})
    assert np.array_equal(small_run.labels, small_run.computed.labels)
    with pytest.raises(InputError, match="apart already"):
        small_run.keep_apart([2, 0])
    with pytest.raises(InputError, match="two different"):
        small_run.keep_apart([1, 1])
    small_run.merge([1, 2])
    assert small_run.groups.apart == {frozenset({0, 1})}
    small_run.merge([0, 1])
    assert small_run.groups.apart == set()
    small_run.undo()
    assert open_run(small_run.directory).groups.apart == {frozenset({0, 1})}


def test_groups_by_name_and_several_at_once(small_run):
    first, second, _ = small_run.names
    done = small_run.merge([first.upper(), second, 2])
    assert (small_run.names, done.n_images) == ([first], int(np.sum(small_run.computed.labels > 0)))
    assert small_run.assignments["second_cluster"].null_count == len(small_run.labels)


def test_moved_images_are_certain_and_groups_without_images_end(small_run):
    rows = np.flatnonzero(small_run.labels == 1)
    small_run.move(small_run.paths()[rows[0]], "only one")
    assert small_run.names_by_cluster[3] == "only one"
    about = small_run.assignments.slice(rows[0], 1).to_pylist()[0]
    assert (about["cluster"], about["confidence"], about["second_cluster"]) == (3, 1.0, None)
    small_run.move(rows[1:].tolist(), 0)
    assert 1 not in small_run.names_by_cluster
    with pytest.raises(InputError, match="no group 1"):
        small_run.move(0, 1)
    assert set(small_run.assignments["second_cluster"].drop_null().to_pylist()) <= {0, 2, 3}


def test_images_that_are_set_aside_are_in_no_group(small_run):
    last = len(small_run.labels) - 1
    assert small_run.assignments["outlier"].to_pylist()[last]
    small_run.set_aside([0, last])
    assert np.flatnonzero(small_run.labels < 0).tolist() == [0, last]
    about = small_run.assignments.slice(0, 1).to_pylist()[0]
    assert [about[key] for key in ("cluster", "name", "confidence", "outlier")] == [
        None,
        None,
        None,
        False,
    ]
    for column in ("exemplars", "borderline"):
        shown = {row for rows in small_run.clusters[column].to_pylist() for row in rows}
        assert not {0, last} & shown
    with pytest.raises(InputError, match="set aside already"):
        small_run.set_aside(0)
    small_run.move([0, last], 1)
    assert small_run.labels[[0, last]].tolist() == [1, 1]


def test_a_split_follows_the_graph(make_run, tmp_path):
    run = make_run(tmp_path / "run")
    n = len(run.labels)
    run.merge([0, 1])
    inside = run.computed.labels[np.flatnonzero(run.labels == 0)]
    done = run.split(0, 2)
    assert done.n_images == len(inside)
    # Only the two that were merged are linked within.
    assert {tuple(np.unique(run.computed.labels[run.labels == c])) for c in (0, 3)} == {(0,), (1,)}
    assert np.sum(run.labels == 0) >= np.sum(run.labels == 3)
    assert run.names_by_cluster[3] == f"{run.names_by_cluster[0]} 2"
    assert len(run.labels) == n
    with pytest.raises(ParameterError):
        run.split(0, 1)
    with pytest.raises(InputError, match="parts"):
        run.split(3, 1000)


def test_parts_of_a_group_get_the_names_that_are_given(small_run):
    text = "is the name of group 1 already"
    with pytest.raises(InputError, match=text):
        edit_run(small_run, plan_split(0, 3, ["first", small_run.names[1]]))
    edits = edit_run(small_run, plan_split(0, 3, ["ignored", None, "third"]))
    run = small_run.with_edits(edits)
    assert run.names_by_cluster[0] == small_run.names[0]
    assert [run.names_by_cluster[n] for n in (3, 4)] == [f"{small_run.names[0]} 2", "third"]


def test_two_groups_cannot_have_one_name(small_run):
    first = small_run.names[0]
    with pytest.raises(InputError, match=r"name of group 0 already.*merge groups 0 and 2"):
        small_run.rename(2, f" {first.upper()} ")
    assert small_run.edits == ()
    with pytest.raises(ParameterError, match="empty"):
        small_run.rename(2, " ")


def test_history_says_what_was_done_and_undone(small_run):
    small_run.merge([0, 1])
    small_run.rename(0, "both")
    small_run.undo()
    small_run.undo()
    small_run.redo()
    small_run.set_aside(3)
    history = open_run(small_run.directory).history
    assert [one.is_undone for one in history] == [False, True, False]
    assert history[1].text.endswith('to "both"')
    with pytest.raises(InputError, match="nothing to redo"):
        small_run.redo()


def test_a_preview_says_what_an_edit_would_touch_and_changes_nothing(small_run):
    small_run.rename(0, "mine")
    before = (small_run.directory / EDITS).read_bytes()
    first, second, third = small_run.clusters["size"].to_pylist()
    previews = [
        small_run.merge([0, 1, 2], preview=True),
        small_run.split(0, parts=2, preview=True),
        small_run.move([0, 1], "new", preview=True),
        small_run.rename(1, "other", preview=True),
        small_run.set_aside(3, preview=True),
        small_run.undo(preview=True),
    ]
    assert [one.n_images for one in previews] == [second + third, first, 2, second, 1, first]
    with pytest.raises(InputError, match="nothing to redo"):
        small_run.redo(preview=True)
    assert (small_run.directory / EDITS).read_bytes() == before
    assert small_run.names[0] == "mine"
    assert len(small_run.history) == 1


def test_explanations_follow_the_edits(small_run):
    small_run.merge([0, 1])
    small_run.move(5, 2)
    small_run.set_aside(6)
    assert small_run.explain(5).is_by_hand
    assert "moved there by hand" in str(small_run.explain(5))
    aside = small_run.explain(6)
    assert aside.chosen is None
    assert "set aside" in str(aside)
    labels = small_run.labels
    found = small_run.explain(0)
    assert found.chosen.cluster == labels[0]
    assert {labels[image.row] for image in found.chosen.nearest} == {labels[0]}


def test_a_run_without_a_graph_can_be_edited(tmp_path, make_run):
    made = make_run(tmp_path / "made")
    contents = RunContents(made.manifest, made.assignments, made.clusters, made.images)
    with RunWriter(tmp_path / "bare") as writer:
        run = writer.finish(contents)
    run.merge([0, 1])
    assert run.clusters["cohesion"].to_pylist()[0] is None
    with pytest.raises(InputError, match="no array"):
        run.split(0, 2)


def test_parts_may_have_lost_their_images_but_not_their_numbers():
    gone = {"name": "a", "rows": np.empty(0, dtype=np.intp)}
    every = {"name": "b", "rows": np.array([1, 5, 9])}
    edits = [{"kind": "split", "cluster": 1, "parts": [gone, every]}]
    # The rest of the group is gone as well, and may get images again.
    edits.append({"kind": "merge", "clusters": [1, 2]})
    checked = [checked_edit(plain_edit(edit), N_IMAGES) for edit in edits]
    groups = replay(computed(), checked)
    assert groups.names == {0: "name 0", 1: "name 1", 3: "name 3", 5: "b"}
    assert np.flatnonzero(groups.labels == 1).tolist() == [2, 6, 10]
    assert groups.next_number == 6
