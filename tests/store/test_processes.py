"""Several processes at one store, some of them killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

from nouncut.store.store import FeatureStore

DIM = 64
BATCH = 40
# Forks a writer for every line it reads, so that each begins at once.
WRITERS = f"""
import os, signal, sys
import numpy as np
from nouncut.store.store import FeatureStore

def write(first, last):
    store = FeatureStore(sys.argv[1])
    new = 0
    for start in range(first, last, {BATCH}):
        numbers = np.arange(start, start + {BATCH})
        rows = np.sin(np.outer(numbers + 1.0, np.arange(1, {DIM} + 1))).astype(np.float32)
        new += store.append("s", [f"key-{{n}}" for n in numbers], rows)
    return new

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in iter(sys.stdin.readline, ""):
    first, last = map(int, line.split())
    pid = os.fork()
    if pid == 0:
        os.write(1, f"new {{write(first, last)}}\\n".encode())
        os._exit(0)
    os.write(1, f"pid {{pid}}\\n".encode())
"""


def rows_of(numbers):
    angles = np.outer(np.asarray(numbers) + 1.0, np.arange(1, DIM + 1))
    return np.sin(angles).astype(np.float32)


def stored_numbers(store, limit):
    keys = [f"key-{number}" for number in range(limit)]
    return sorted(set(range(limit)) - set(store.missing("s", keys)))


@contextmanager
def writers(root):
    """Yield a process that starts writers."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WRITERS, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def start(process, first, last):
    process.stdin.write(f"{first} {last}\n")
    process.stdin.flush()


def start_and_identify(process, first, last):
    start(process, first, last)
    return int(process.stdout.readline().removeprefix("pid "))


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.001)


def test_processes_killed_at_any_moment_do_no_harm(tmp_path):
    chance = random.Random(5)
    store = FeatureStore(tmp_path / "store")
    with writers(store.root) as process:
        # Two at a time, so that the survivor meets what the killed one left behind.
        alive = [start_and_identify(process, 0, 10**9) for _ in range(2)]
        for _ in range(10):
            time.sleep(chance.uniform(0.0, 0.12))
            kill(alive.pop(0))
            assert store.check() == []
            first = sum(space.n_rows for space in store.spaces()) // BATCH * BATCH
            alive.append(start_and_identify(process, first, 10**9))
        # What was written until now depends on the machine.
        end = time.monotonic() + 60
        while sum(space.n_rows for space in store.spaces()) <= 1000 and time.monotonic() < end:
            time.sleep(0.01)
        for pid in alive:
            kill(pid)
    (space,) = store.spaces()
    survivors = stored_numbers(store, 2 * space.n_rows)
    assert len(survivors) == space.n_rows > 1000
    assert len(survivors) % BATCH == 0
    keys = [f"key-{number}" for number in survivors]
    assert np.array_equal(store.read("s", keys), rows_of(survivors))
    assert store.check() == []


def test_two_processes_append_the_same_keys_at_once(tmp_path):
    FeatureStore(tmp_path)
    with writers(tmp_path) as process:
        start(process, 0, 1200)
        start(process, 400, 1600)
        answers = [process.stdout.readline().split() for _ in range(4)]
        process.stdin.close()
    new = [int(number) for word, number in answers if word == "new"]
    assert sum(new) == 1600
    assert min(new) > 0
    store = FeatureStore(tmp_path)
    keys = [f"key-{number}" for number in range(1600)]
    assert np.array_equal(store.read("s", keys), rows_of(range(1600)))
    assert store.check() == []
    assert store.spaces()[0].n_bytes == 1600 * DIM * 4
