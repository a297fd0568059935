"""Writers that are killed, and readers that look on."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nouncut.errors import NouncutError
from nouncut.runs.run import open_run
from nouncut.runs.writer import RunWriter

SCRIPT = Path(__file__).with_name("forked_writer.py")


@pytest.fixture(scope="module")
def process():
    """Return a process that starts writers, one after the other."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def start(process, directory, first, last, kill_at=0):
    process.stdin.write(f"{first} {last} {kill_at} {directory}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def wait(process):
    """Return what the writer said, which is nothing if it was killed."""
    answer = process.stdout.readline().strip()
    if answer == "gone":
        return None
    assert process.stdout.readline() == "gone\n"
    return answer


def number_of(run):
    """Return the number of a run, all of whose files must have it."""
    number = run.manifest["number"]
    assert set(run.names) == {f"my {number}"}
    assert set(run.assignments["name"].to_pylist()) == {f"my {number}"}
    assert set(run.images["path"].to_pylist()) == {f"{number}.jpg"}
    assert np.all(run.array("features") == number)
    assert np.all(run.array(f"extra_{number}") == number)
    assert len(run.array("features")) == len(run.assignments) == run.manifest["n_images"]
    return number


def state_of(directory):
    """Return the number of the run that can be opened, or that there is an unfinished one."""
    try:
        run = open_run(directory)
    except NouncutError as error:
        if "is unfinished" in str(error) and "run the command again" in str(error):
            return "unfinished"
        raise
    return number_of(run)


def files_in(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.*"))


def files_of_run(number):
    return [
        f"arrays/extra_{number}.npy",
        "arrays/features.npy",
        "assignments.parquet",
        "clusters.parquet",
        "edits.jsonl",
        "images.parquet",
        "manifest.json",
        "run.lock",
    ]


def write(process, directory, number):
    start(process, directory, number, number + 1)
    assert wait(process) == "done"


def test_a_writer_killed_before_any_of_its_file_operations(process, tmp_path):
    directory = tmp_path / "run"
    seen = ["nothing"]
    for kill_at in range(1, 1000):
        if seen[-1] == 0:
            # Removes what the killed one has left behind.
            with RunWriter(directory):
                assert files_in(directory) == sorted(["report.html", *files_of_run(0)])
        else:
            write(process, directory, 0)
            assert files_in(directory) == files_of_run(0)
            (directory / "report.html").write_text("of run 0")
        assert number_of(open_run(directory)) == 0
        start(process, directory, 1, 2, kill_at)
        assert wait(process) is None
        seen.append(state_of(directory))
        if seen[-1] != "unfinished":
            assert (directory / "report.html").exists() == (seen[-1] == 0)
        if seen[-1] == 1:
            break
    order = ["nothing", 0, "unfinished", 1]
    assert sorted(seen, key=order.index) == seen
    assert min(seen.count(0), seen.count("unfinished")) > 5
    assert files_in(directory) == files_of_run(1)


def test_the_next_writer_ends_what_a_killed_one_began(process, tmp_path):
    seen = []
    for kill_at in range(1, 1000):
        directory = tmp_path / str(kill_at)
        write(process, directory, 0)
        start(process, directory, 1, 2, kill_at)
        assert wait(process) is None
        was = state_of(directory)
        with RunWriter(directory):
            seen.append((was, number_of(open_run(directory))))
        if was == 1:
            break
    assert set(seen) == {(0, 0), ("unfinished", 1), (1, 1)}


def test_a_writer_killed_while_it_ends_what_another_began(process, tmp_path):
    n_tried = 0
    for kill_at in range(1, 1000):
        directory = tmp_path / str(kill_at)
        write(process, directory, 0)
        # The first operations after the manifest has changed.
        while state_of(directory) != "unfinished":
            n_tried += 1
            start(process, directory, 1, 2, n_tried)
            wait(process)
        n_tried -= 1
        start(process, directory, 2, 3, kill_at)
        wait(process)
        if state_of(directory) == 1:
            break
        with RunWriter(directory):
            assert number_of(open_run(directory)) == 1
    assert 3 < kill_at < 999


@pytest.mark.parametrize("kill_at", range(1, 12, 2))
def test_a_first_writer_killed_before_its_file_operations(process, tmp_path, kill_at):
    directory = tmp_path / "runs" / "first"
    start(process, directory, 5, 6, kill_at)
    assert wait(process) is None
    with pytest.raises(NouncutError, match=r"is not a run|unfinished"):
        open_run(directory)
    write(process, directory, 6)
    assert number_of(open_run(directory)) == 6
    assert files_in(directory) == files_of_run(6)


def test_writers_killed_at_any_moment(process, tmp_path):
    chance = random.Random(3)
    directory = tmp_path / "run"
    write(process, directory, 0)
    begin = time.monotonic()
    write(process, directory, 1)
    duration = time.monotonic() - begin
    last = 1
    for attempt in range(1, 16):
        pid = start(process, directory, 1000 * attempt, 1000 * (attempt + 1))
        time.sleep(chance.uniform(0, 1.5 * duration))
        os.kill(pid, signal.SIGKILL)
        assert wait(process) is None
        state = state_of(directory)
        if state != "unfinished":
            assert state >= last
            last = state
    with RunWriter(directory):
        assert not list(directory.rglob("*.nouncut-new"))


def test_readers_never_see_two_runs_mixed(process, tmp_path):
    directory = tmp_path / "run"
    write(process, directory, 0)
    pid = start(process, directory, 1, 10**9)
    seen, refused = set(), []
    end = time.monotonic() + 60
    while len(seen) < 5 and time.monotonic() < end:
        try:
            seen.add(number_of(open_run(directory)))
        except NouncutError as error:
            refused.append(str(error))
    os.kill(pid, signal.SIGKILL)
    wait(process)
    assert len(seen) == 5
    assert [text for text in refused if "unfinished" not in text and "anew" not in text] == []


def test_a_second_writer_is_refused_until_the_first_ends(process, tmp_path):
    directory = tmp_path / "run"
    with RunWriter(directory):
        start(process, directory, 0, 1)
        answer = wait(process)
    assert answer.startswith(f"Another process is writing a run to {directory}.")
    assert "`output`" in answer
    write(process, directory, 0)


def test_the_lock_ends_with_the_process_that_has_it(process, tmp_path):
    pid = start(process, tmp_path, 0, 0)
    assert process.stdout.readline() == "locked\n"
    with pytest.raises(NouncutError, match="Another process"), RunWriter(tmp_path):
        pass
    os.kill(pid, signal.SIGKILL)
    assert wait(process) is None
    with RunWriter(tmp_path):
        pass
