"""Workers, schedulers and clients of a Dask cluster are killed; runs end with the same labels.

What was finished is not repeated: the manifest of a resumed run counts it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client
from distributed.core import Status
from tally import Tally

from nouncut import cluster_images
from nouncut.distributed.client import connect
from nouncut.distributed.stages import Engine
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.run import Run, open_run

sys.path.insert(0, str(Path(__file__).parents[1] / "distributed"))

from dask_processes import DaskProcesses

N_CLUSTERS, N_PARTITIONS, N_WORKERS = 4, 3, 3
_PATIENCE_SECONDS = 300

Attack = Callable[[DaskProcesses, "subprocess.Popen[str]"], None]


def make_source(folder: Path) -> Path:
    """Write features in files; beside them, in one file, and nouns under two prompts."""
    source = folder / "source"
    source.mkdir()
    made = make_clip_like(
        1500, N_CLUSTERS, n_nouns=40, n_prompts=2, dim=64, separation=0.45, random_state=0
    )
    for number, part in enumerate(np.array_split(made.features, 3)):
        np.save(source / f"{number}.npy", part)
    np.save(folder / "whole.npy", made.features)
    nouns = [f"noun {number}" for number in range(40)]
    np.savez(folder / "nouns.npz", nouns=nouns, features=np.stack(made.noun_features))
    return source


def attack_workers(folder: Path, n_stages: int) -> Tally:
    """Kill a worker in each of the first stages: by looks, with nouns, with micro-clusters."""
    tally = Tally("worker of a cluster killed")
    source = make_source(folder)
    runs: dict[str, tuple[Path, dict[str, Any]]] = {
        "looks": (source, {}),
        "nouns": (folder / "whole.npy", {"model": str(folder / "nouns.npz")}),
        "micro": (source, {"coarsen": 300}),
    }
    with connect(f"local:{N_WORKERS}", memory_limit=10**9) as client:
        for name, (images, options) in runs.items():
            expected = _cluster(images, folder / f"{name}-calm", client, **options).labels
            killed: list[str] = []
            with _worker_killed_in_stages(client, killed, n_stages):
                found = _cluster(images, folder / name, client, **options).labels
            check = partial(_check_labels, found, expected)
            for stage in killed:
                tally.attempt(f"{name}, {stage}", check)
    return tally


@contextmanager
def _worker_killed_in_stages(client: Client, killed: list[str], n_stages: int) -> Iterator[None]:
    wait = Engine._completed

    def kill_and_wait(
        engine: Engine, futures: list[Any], stage: str, steps: Collection[str]
    ) -> Iterator[Any]:
        while len(killed) < n_stages and not all(future.done() for future in futures):
            if _kill_busy_worker(client):
                killed.append(stage)
                break
        yield from wait(engine, futures, stage, steps)
        while not all(map(_is_up, client.cluster.workers.values())):
            time.sleep(0.02)

    Engine._completed = kill_and_wait  # type: ignore[method-assign]
    try:
        yield
    finally:
        Engine._completed = wait  # type: ignore[method-assign]


def _kill_busy_worker(client: Client) -> bool:
    """Kill a worker that has tasks to do; False if none has any."""
    busy = {address for address, keys in client.processing().items() if keys}
    for nanny in client.cluster.workers.values():
        if nanny.worker_address in busy and _is_up(nanny):
            os.kill(nanny.process.pid, signal.SIGKILL)
            return True
    return False


def _is_up(nanny: Any) -> bool:
    """Tell whether a worker has started: one that is killed before is never replaced."""
    return nanny.process is not None and nanny.process.status is Status.running


def attack_schedulers(folder: Path, n_kills: int) -> Tally:
    """Kill the scheduler while the command runs."""
    tally = Tally("scheduler of a cluster killed")
    return _attack_commands(folder, n_kills, tally, lambda cluster, _: cluster.kill_scheduler())


def attack_clients(folder: Path, n_kills: int) -> Tally:
    """Interrupt the command, and kill it, in turn."""
    tally = Tally("client of a cluster interrupted or killed")
    signals = [signal.SIGINT, signal.SIGKILL]

    def attack(_: DaskProcesses, command: subprocess.Popen[str]) -> None:
        command.send_signal(signals[tally.tried % 2])

    return _attack_commands(folder, n_kills, tally, attack)


def _attack_commands(folder: Path, n_kills: int, tally: Tally, attack: Attack) -> Tally:
    """Attack at evenly spaced stages; resume on another cluster; compare with a calm run."""
    source = make_source(folder)
    with DaskProcesses(folder, N_WORKERS) as address:
        assert _command(source, folder / "calm", address).wait(_PATIENCE_SECONDS) == 0
    calm = open_run(folder / "calm")
    n_stages = len(calm.manifest["stages"])
    for number in range(n_kills):
        after = (number + 1) * n_stages // (n_kills + 1)

        def attempt(after: int = after, output: Path = folder / f"run-{number}") -> None:
            finished = _attacked(source, output, after, attack)
            with DaskProcesses(folder, N_WORKERS) as address:
                again = _command(source, output, address, "--resume")
                said = again.communicate(timeout=_PATIENCE_SECONDS)[0]
            assert again.returncode == 0, said
            run = open_run(output)
            _check_labels(run.labels, calm.labels)
            _check_finished(run, finished)

        tally.attempt(f"after {after} stages", attempt)
    return tally


def _attacked(source: Path, output: Path, after: int, attack: Attack) -> Counter[str]:
    """Attack a command when some stages are done; return the finished tasks of every stage."""
    cluster = DaskProcesses(output.parent, N_WORKERS)
    with cluster as address:
        command = _command(source, output, address)
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(list(output.glob("work/stages/*.json"))) < after:
            assert command.poll() is None, f"ended early: {command.communicate()[0]}"
            assert time.monotonic() < end, "nothing happens"
            time.sleep(0.02)
        attack(cluster, command)
        said = command.communicate(timeout=_PATIENCE_SECONDS)[0]
    assert command.returncode != 0, "the command noticed nothing"
    assert "Traceback" not in said, said
    assert command.returncode < 0 or "--resume" in said, said
    return Counter(path.parent.name for path in output.glob("work/receipts/*/*.json"))


def _check_labels(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.array_equal(found, expected), "other labels"


def _check_finished(run: Run, finished: Counter[str]) -> None:
    stages = run.manifest["stages"]
    repeated = [name for name, n in finished.items() if stages[name]["n_finished"] < n]
    assert not repeated, f"finished tasks were repeated: {repeated}"


def _cluster(source: Path, output: Path, client: Client, **options: Any) -> Run:
    own = {"output": output, "client": client, "partitions": N_PARTITIONS}
    return cluster_images(source, N_CLUSTERS, **own, **options)


def _command(source: Path, output: Path, address: str, *more: str) -> subprocess.Popen[str]:
    words = ["cluster", source, "-k", N_CLUSTERS, "--scheduler", address, "--output", output]
    words += ["--partitions", N_PARTITIONS, *more]
    return subprocess.Popen(
        [sys.executable, "-m", "nouncut", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Shells make background jobs ignore interrupts, and so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
