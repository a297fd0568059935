"""The command in forks of a process that has loaded the libraries once.

A fork can be killed before one of its file operations or after some time, and its files can be
kept from growing.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from scene import Scene

# Events of Python's audit hooks that open the files of a run or a store, or change a folder.
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.link", "sqlite3.connect"}
_HUNG_SECONDS = 120


@dataclass(frozen=True)
class Fault:
    """What happens to a command; nothing by default."""

    kill_before_operation: int | None = None
    kill_after_seconds: float | None = None
    largest_file: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How a command ended; a negative code is the signal that ended it."""

    code: int
    said: str
    seconds: float
    n_operations: int

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


def cluster_command(scene: Scene, run: Path) -> list[str]:
    """Return the arguments that cluster a scene."""
    words = ["--vocabulary", str(scene.words), "--model", str(scene.model)]
    return ["cluster", str(scene.photos), "-k", "4", *words, "--output", str(run)]


def run_forked(
    arguments: Sequence[str], cache: Path, watched: Path, fault: Fault | None = None
) -> Outcome:
    """Run the command in a fork; its operations on files below `watched` are counted."""
    request = (list(arguments), str(cache), str(watched), astuple(fault or Fault()))
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    code, seconds = json.loads(server.stdout.readline())
    assert seconds < _HUNG_SECONDS, "the command hangs"
    said = (watched / "said").read_bytes().decode(errors="replace")
    return Outcome(code, said, seconds, int((watched / "count").read_text() or 0))


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that forks, and does nothing else: forks inherit no threads."""
    command = [sys.executable, "-W", "ignore", __file__]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Fork a command for every line of standard input."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
    import_module("warm_command")
    for line in iter(sys.stdin.readline, ""):
        arguments, cache, watched, fault = json.loads(line)
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _become_the_command(arguments, Path(cache), Path(watched), Fault(*fault))
        # A fork that hangs must not hang the campaign.
        signal.signal(signal.SIGALRM, lambda *_, pid=pid: os.kill(pid, signal.SIGKILL))
        signal.alarm(_HUNG_SECONDS)
        _, status = os.waitpid(pid, 0)
        signal.alarm(0)
        answer = (os.waitstatus_to_exitcode(status), time.monotonic() - start)
        print(json.dumps(answer), flush=True)


def _become_the_command(arguments: Sequence[str], cache: Path, watched: Path, fault: Fault) -> None:
    """Run the command, and end the process."""
    code = 1
    try:
        said = os.open(watched / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.update(NOUNCUT_CACHE=str(cache), HF_HUB_OFFLINE="1", COLUMNS="100")
        counter = os.open(watched / "count", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        _count_operations(str(watched), counter, fault.kill_before_operation)
        if fault.kill_after_seconds is not None:
            timer = (os.getpid(), signal.SIGKILL)
            threading.Timer(fault.kill_after_seconds, os.kill, timer).start()
        if fault.largest_file is not None:
            # Otherwise the first write beyond it would end the process.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (fault.largest_file,) * 2)
        from nouncut.cli import main

        sys.argv = ["nouncut", *arguments]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _count_operations(folder: str, counter: int, kill_at: int | None) -> None:
    count = 0

    def watch(event: str, arguments: tuple) -> None:
        nonlocal count
        if event in OPERATIONS and folder in str(arguments[0]):
            count += 1
            os.pwrite(counter, str(count).encode(), 0)
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


if __name__ == "__main__":
    serve()
