from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from dask_processes import DaskProcesses
from task_functions import die_once, double, fail_until, hang_once, say_worker

from nouncut.distributed import stages
from nouncut.distributed.client import connect
from nouncut.distributed.stages import Engine, Flow, Task
from nouncut.distributed.storage import Storage
from nouncut.errors import ClusterError, InputError, ParameterError


def doubling(numbers, **arguments):
    return [Task(str(n), double, {"number": n} | arguments) for n in numbers]


def receipts(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("receipts/*/*.json")}


def test_results_come_in_order_and_files_are_there(client, tmp_path):
    engine = Engine(client, Storage(str(tmp_path)))
    found = engine.run("doubling", doubling(range(5)))
    assert [result["sum"] for result in found] == [0, 6, 12, 18, 24]
    assert engine.storage.read("doubled/4.npy").tolist() == [8, 8, 8]
    assert engine.counts["doubling"].bytes_written > 5 * 24


def test_a_second_run_repeats_only_what_is_missing(client, tmp_path):
    Engine(client, Storage(str(tmp_path))).run("doubling", doubling(range(5)))
    (tmp_path / "stages" / "doubling.json").unlink()
    (tmp_path / "receipts" / "doubling" / "3.json").unlink()
    before = receipts(tmp_path)
    engine = Engine(client, Storage(str(tmp_path)))
    assert [r["sum"] for r in engine.run("doubling", doubling(range(5)))] == [0, 6, 12, 18, 24]
    assert engine.counts["doubling"].n_finished == 4
    assert {name: time for name, time in receipts(tmp_path).items() if name != "3.json"} == before


def test_a_half_written_file_is_not_taken(client, tmp_path):
    Engine(client, Storage(str(tmp_path))).run("doubling", doubling(range(3)))
    (tmp_path / "stages" / "doubling.json").unlink()
    whole = (tmp_path / "doubled" / "1.npy").read_bytes()
    (tmp_path / "doubled" / "1.npy").write_bytes(whole[:-1])
    engine = Engine(client, Storage(str(tmp_path)))
    engine.run("doubling", doubling(range(3)))
    assert engine.counts["doubling"].n_finished == 2
    assert (tmp_path / "doubled" / "1.npy").read_bytes() == whole


def test_a_killed_worker_costs_one_task(processes, tmp_path):
    tasks = doubling(range(4))
    tasks[2] = Task("2", die_once, {"number": 2, "marker": str(tmp_path / "died")})
    engine = Engine(processes, Storage(str(tmp_path / "work")))
    assert [r["sum"] for r in engine.run("doubling", tasks)] == [0, 6, 12, 18]
    assert (tmp_path / "died").exists()


def test_a_task_that_keeps_failing_is_named_and_the_rest_is_kept(client, tmp_path):
    tasks = [*doubling(range(3)), Task("bad", fail_until, {"marker": str(tmp_path / "back")})]
    engine = Engine(client, Storage(str(tmp_path / "work")))
    with pytest.raises(ClusterError, match=r"Task bad .*the disk is away.*resume=True"):
        engine.run("doubling", tasks)
    before = receipts(tmp_path / "work")
    (tmp_path / "back").touch()
    again = Engine(client, Storage(str(tmp_path / "work")))
    again.run("doubling", tasks)
    assert again.counts["doubling"].n_finished == len(before)


def test_a_killed_scheduler_is_explained_and_nothing_is_repeated(tmp_path, caplog):
    tasks = doubling(range(6), seconds=0.3)
    cluster = DaskProcesses(tmp_path)
    with cluster as address, connect(address) as client:

        def progress(stage, n_done, total):
            if n_done == 2:
                cluster.kill_scheduler()

        engine = Engine(client, Storage(str(tmp_path / "work")), progress)
        with pytest.raises(ClusterError, match=r"scheduler was lost.*resume=True"):
            engine.run("doubling", tasks, "doubling")
    # Users read one sentence, not Dask's tracebacks.
    assert not [record for record in caplog.records if record.name == "distributed.client"]
    before = receipts(tmp_path / "work")
    assert len(before) >= 2
    with DaskProcesses(tmp_path) as address, connect(address) as client:
        engine = Engine(client, Storage(str(tmp_path / "work")))
        assert [r["sum"] for r in engine.run("doubling", tasks)] == [6 * n for n in range(6)]
    assert engine.counts["doubling"].n_finished == len(before)
    assert before.items() <= receipts(tmp_path / "work").items()


def test_an_interrupted_client_goes_on_where_it_stopped(client, tmp_path):
    def interrupt(stage, n_done, total):
        if n_done == 2:
            raise KeyboardInterrupt

    tasks = doubling(range(8), seconds=0.2)
    with pytest.raises(KeyboardInterrupt):
        Engine(client, Storage(str(tmp_path)), interrupt).run("doubling", tasks, "doubling")
    n_finished = len(receipts(tmp_path))
    assert 2 <= n_finished < 8
    engine = Engine(client, Storage(str(tmp_path)))
    engine.run("doubling", tasks)
    # Tasks that were running when the client stopped may have ended since.
    assert engine.counts["doubling"].n_finished >= n_finished


def test_what_the_client_computes_is_kept(client, tmp_path):
    calls = []
    for _ in range(2):
        engine = Engine(client, Storage(str(tmp_path)))
        assert engine.once("choices", lambda: calls.append(1) or {"tau": 0.5}) == {"tau": 0.5}
    assert calls == [1]


def test_wrong_schedulers_are_explained(monkeypatch):
    monkeypatch.setattr("nouncut.distributed.client._CONNECT_SECONDS", 1)
    with pytest.raises(ParameterError, match="local:4"), connect("local:many"):
        pass
    with pytest.raises(ClusterError, match="No Dask scheduler answers"), connect("carrier:1"):
        pass


@pytest.mark.parametrize("url", ["memory://bucket/prefix", "folder"])
def test_storage_reads_what_it_wrote(tmp_path, url):
    storage = Storage(url if ":" in url else str(tmp_path / url))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 3)).astype(np.float32)
    storage.write("a/rows.npy", rows)
    storage.write_several("a/some.npz", x=rows[:2], y=np.arange(3))
    storage.write_json("b.json", {"k": [1, 2]})
    # One request reads the whole of a small array, but the beginning of a large one.
    many = rng.normal(size=(9000, 3))
    storage.write("a/many.npy", many)
    for name, array in (("rows", rows), ("many", many)):
        for start, stop in ((0, None), (2, 5), (2000, 8500), (8990, 9999), (9000, None), (7, 7)):
            assert np.array_equal(storage.read(f"a/{name}.npy", start, stop), array[start:stop])
    assert storage.read_several("a/some.npz")["y"].tolist() == [0, 1, 2]
    assert storage.read_json("b.json") == {"k": [1, 2]}
    assert storage.sizes("a") == {
        name.removeprefix("a/"): size
        for name, size in storage.written.items()
        if name.startswith("a/")
    }
    storage.remove("a")
    assert storage.sizes("a") == {}
    assert storage.size("a/rows.npy") is None
    with pytest.raises(InputError, match=r"a/rows.npy is missing"):
        storage.read("a/rows.npy")


def test_steps_move_if_all_workers_are_replaced_at_once(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "_LOOK_SECONDS", 0.5)
    flow, markers = Flow(), [tmp_path / str(home) for home in range(2)]
    nannies = list(processes.cluster.workers.values())
    pids = [nanny.process.pid for nanny in nannies]

    def kill_all():
        while not all(marker.exists() for marker in markers):
            time.sleep(0.05)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    steps = [flow.add(hang_once, home=home, marker=str(m)) for home, m in enumerate(markers)]
    tasks = [Task(str(home), say_worker, {}, (step,)) for home, step in enumerate(steps)]
    killer = threading.Thread(target=kill_all)
    killer.start()
    engine = Engine(processes, Storage(str(tmp_path / "work")))
    assert len(engine.run("homes", tasks, flow=flow)) == 2
    killer.join()
    assert {nanny.process.pid for nanny in nannies}.isdisjoint(pids)


def test_steps_run_at_home(processes, tmp_path):
    flow, addresses = Flow(), sorted(processes.scheduler_info(n_workers=-1)["workers"])
    first = [flow.add(np.zeros, home=home, shape=1000) for home in range(2)]
    # A step is at home with its first input.
    second = [flow.add(np.add, *pair) for pair in (first, first[::-1])]
    tasks = [Task(str(home), say_worker, {}, (one,)) for home, one in enumerate(second)]
    found = Engine(processes, Storage(str(tmp_path))).run("homes", tasks, flow=flow)
    assert [one["address"] for one in found] == addresses
