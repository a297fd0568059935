"""The edit log on disk: torn, damaged, shared by two writers, and from an earlier version."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time

import pytest

from nouncut.errors import InputError, OutputError
from nouncut.runs.check import check_run
from nouncut.runs.edit_log import EDITS, LogFile, rename_entry
from nouncut.runs.run import open_run
from nouncut.runs.writer import RunWriter

WRITER = """
import sys
from nouncut.runs.run import open_run
directory, name = sys.argv[1:]
run = open_run(directory)
print("ready", flush=True)
sys.stdin.readline()
for number in range(15):
    run.rename(int(name), f"{name} is {number}")
"""


@pytest.fixture
def edited(small_run):
    small_run.merge([0, 1])
    small_run.rename(0, "both \N{CAT FACE}")
    small_run.set_aside([1, 2])
    small_run.undo()
    return small_run


def texts(run):
    return [one.text for one in run.edits]


def test_a_log_cut_anywhere_opens_with_the_first_edits(edited):
    path = edited.directory / EDITS
    content, every = path.read_bytes(), texts(edited)
    seen = set()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        run = open_run(edited.directory)
        n = max(0, content[:length].count(b"\n") - 1)
        assert texts(run) == every[:n]
        seen.add(n)
    assert seen == {0, 1, 2, 3, 4}


def test_lines_are_understood_once(edited):
    ours, theirs = (LogFile(edited.directory, edited.manifest) for _ in range(2))
    known = ours.read().edits
    assert texts(edited) == [one.text for one in known]
    assert ours.read().edits[-1] is known[-1]
    # Another writer's edits are read, and the others stay the same objects.
    theirs.append(plan := lambda edits: rename_entry({2: f"name {len(edits)}"}))
    found = ours.append(plan).edits
    assert found[:4] == known
    assert [one.edit["names"][2] for one in found[4:]] == ["name 4", "name 5"]
    assert ours.read().edits == found
    assert [one.text for one in open_run(edited.directory).edits] == [one.text for one in found]
    # A log that was shortened by hand is read from the start.
    path = edited.directory / EDITS
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert [one.text for one in ours.read().edits] == texts(edited)[:2]
    path.unlink()
    assert ours.read().edits == ()
    ours.append(plan)
    assert len(open_run(edited.directory).edits) == len(ours.read().edits) == 1


@pytest.mark.parametrize("lost", [1, 30, 10_000])
def test_the_next_edit_removes_what_a_killed_writer_left(edited, lost):
    path = edited.directory / EDITS
    content = path.read_bytes()
    path.write_bytes(content[:-lost])
    run = open_run(edited.directory)
    kept = texts(run)
    run.rename(2, "third")
    assert texts(open_run(run.directory)) == [*kept, run.edits[-1].text]
    assert content.startswith(path.read_bytes()[:-400]) or lost == 10_000
    assert path.read_bytes().endswith(b"}\n")


def test_zeros_at_the_end_are_an_unfinished_line(edited):
    path = edited.directory / EDITS
    with path.open("ab") as file:
        file.write(bytes(600) + b"\n")
    run = open_run(edited.directory)
    assert texts(run) == texts(edited)
    run.redo()
    assert len(open_run(run.directory).edits) == 5


def test_no_line_can_be_changed_removed_or_moved(edited):
    path = edited.directory / EDITS
    lines = path.read_bytes().splitlines(keepends=True)
    changed = lines[2].replace(b"both", b"BOTH")
    for bad in (
        [*lines[:2], changed, *lines[3:]],
        [*lines[:2], *lines[3:]],
        [*lines[:2], lines[3], lines[2], lines[4]],
        [*lines, lines[-1]],
        [*lines[:2], b"[" * 100_000 + b"\n"],
        [*lines[:-1], lines[-1][:-1] + b"x"],
        [b"null\n"],
    ):
        path.write_bytes(b"".join(bad))
        with pytest.raises(InputError, match=r"Line \d of .*edits.jsonl is damaged"):
            open_run(edited.directory)
        assert any("edits.jsonl" in problem for problem in check_run(edited.directory).problems)
        with pytest.raises(InputError):
            edited.rename(2, "x")
        assert path.read_bytes() == b"".join(bad)


def test_edits_with_right_checksums_that_do_not_fit_are_refused(edited, seal_log):
    seal_log(edited, {"kind": "merge", "clusters": [0, 7]})
    run = open_run(edited.directory)
    with pytest.raises(InputError, match="no group 7"):
        _ = run.clusters
    assert "no group 7" in str(check_run(edited.directory).problems)
    seal_log(edited, {"kind": "move", "rows": [999], "to": 0})
    with pytest.raises(InputError, match="images that are not from 0 to 23"):
        open_run(edited.directory)


@pytest.fixture
def seal_log():
    """Return a function that writes a log as a stranger could."""
    from nouncut.runs.edit_log import _lines

    def write(run, edit):
        head = {"format": 1, "run": run.manifest["id"]}
        line = {"edit": edit, "time": "", "text": "", "images": 0}
        (run.directory / EDITS).write_bytes(_lines([head, line], ""))

    return write


@pytest.fixture
def start_writer(small_run):
    def start(name):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, small_run.directory, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout.readline() == "ready\n"
        return writer

    return start


def go(writer):
    writer.stdin.write("go\n")
    writer.stdin.flush()


def test_two_writers_lose_no_edit(small_run, start_writer):
    writers = [start_writer(name) for name in ("0", "1")]
    for writer in writers:
        go(writer)
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    run = open_run(small_run.directory)
    names = [name for one in run.edits for name in one.edit["names"].values()]
    for number in (0, 1):
        mine = [name for name in names if name.startswith(f"{number} is")]
        assert mine == [f"{number} is {count}" for count in range(15)]
    assert len(names) == 30


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05])
def test_a_killed_writer_leaves_a_log_that_opens(small_run, start_writer, seconds):
    writer = start_writer("1")
    go(writer)
    time.sleep(seconds)
    writer.kill()
    writer.communicate()
    run = open_run(small_run.directory)
    for number, one in enumerate(run.edits):
        assert one.edit["names"] == {1: f"1 is {number}"}
    run.rename(0, "after")
    assert open_run(small_run.directory).names_by_cluster[0] == "after"


def test_an_edit_is_made_of_the_groups_as_they_are_now(small_run):
    other = open_run(small_run.directory)
    small_run.merge([0, 1])
    with pytest.raises(InputError, match="no group 1"):
        other.merge([2, 1])
    other.rename(2, "third")
    assert len(other.edits) == 2
    assert 1 not in other.names_by_cluster


def test_no_edit_while_a_run_is_being_written(small_run, monkeypatch):
    monkeypatch.setattr("nouncut.runs.edit_log._PATIENCE", 0.1)
    with RunWriter(small_run.directory), pytest.raises(OutputError, match="Another process"):
        small_run.rename(0, "x")
    small_run.rename(0, "x")


def test_no_edit_of_a_run_that_was_replaced(small_run, make_run):
    make_run(small_run.directory)
    with pytest.raises(InputError, match="written anew"):
        small_run.rename(0, "x")


def test_a_full_disk_leaves_the_log_as_it_was(edited, monkeypatch):
    before = (edited.directory / EDITS).read_bytes()
    write = os.write

    def half(descriptor, content):
        if len(content) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, content[: len(content) // 2])

    monkeypatch.setattr("nouncut.runs.edit_log.os.write", half)
    with pytest.raises(OutputError, match="No room left"):
        edited.rename(2, "x")
    monkeypatch.undo()
    assert (edited.directory / EDITS).read_bytes() == before
    assert texts(open_run(edited.directory)) == texts(edited)


def test_a_link_in_the_place_of_the_lock_is_refused(small_run, tmp_path):
    (tmp_path / "mine").write_bytes(b"mine")
    (small_run.directory / "run.lock").unlink(missing_ok=True)
    (small_run.directory / "run.lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match="is a link"):
        small_run.rename(0, "x")
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_names_of_an_earlier_version_are_the_first_edit(small_run):
    found = small_run.names
    saved = {"format": 1, "run": small_run.manifest["id"], "names": {"1": "My cats"}}
    (small_run.directory / "names.json").write_text(json.dumps(saved))
    run = open_run(small_run.directory)
    assert run.names == [found[0], "My cats", found[2]]
    run.rename(0, "My dogs")
    again = open_run(small_run.directory)
    assert again.names == ["My dogs", "My cats", found[2]]
    assert len(again.history) == 2
    again.undo()
    again.undo()
    assert open_run(small_run.directory).names == found
