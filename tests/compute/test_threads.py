from __future__ import annotations

import os
import threading
import time

import pytest
from joblib import cpu_count, parallel_config

from nouncut.compute.threads import count_threads, run_tasks


def test_tasks_run_at_once():
    met = threading.Barrier(2, timeout=60)
    run_tasks(lambda _: met.wait(), range(2), n_threads=2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_task_is_raised(n_threads):
    with pytest.raises(ZeroDivisionError):
        run_tasks(lambda x: 1 / x, [1, 0, 2], n_threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_use_threads():
    run_tasks(time.sleep, [0.0] * 4, n_threads=2)
    child = os.fork()
    if child == 0:
        run_tasks(time.sleep, [0.0] * 4, n_threads=2)
        os._exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked child waits for threads that it does not have")


def test_count_threads_follows_scikit_learn():
    assert count_threads(3) == 3
    assert count_threads(None) == 1
    assert count_threads(-1) == cpu_count()
    with parallel_config("threading", n_jobs=3):
        assert count_threads(None) == 3
    with pytest.raises(ValueError, match="n_jobs"):
        count_threads(0)
