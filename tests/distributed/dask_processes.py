"""A Dask cluster of processes that can be killed one by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


class DaskProcesses:
    """A scheduler and workers as processes of their own; entering it returns the address."""

    def __init__(self, folder: Path, n_workers: int = 1) -> None:
        self._file, self._n_workers = folder / f"scheduler-{time.time_ns()}.json", n_workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> str:
        self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        # The file is there before its content.
        while not (self._file.exists() and self._file.read_text().endswith("}")):
            time.sleep(0.05)
        for _ in range(self._n_workers):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "1GB"]
            self._start("dask_worker", *options, "--death-timeout", "120")
        return str(json.loads(self._file.read_text())["address"])

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def kill_scheduler(self) -> None:
        """Kill the scheduler; workers wait for another one in vain."""
        self._processes[0].kill()

    def _start(self, module: str, *options: str) -> None:
        # Workers import the tasks of the tests by name.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)])}
        command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
        command += ["--scheduler-file", str(self._file)]
        self._processes.append(
            subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        )
