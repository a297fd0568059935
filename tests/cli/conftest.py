"""The installed command, run in a process of its own on little pictures."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

COMMAND = Path(sys.executable).with_name("nouncut")
HERE = Path(__file__).parent
WARM = HERE / "warm_command.py"
# Importing torch, transformers and scikit-learn takes longer than most tests: processes are forked
# from one that has them. NOUNCUT_TEST_COLD=1 starts every command from nothing instead.
IS_WARM = sys.platform == "linux" and "NOUNCUT_TEST_COLD" not in os.environ
PATIENCE = 240
WORDS = ("cat", "dog", "sea", "photo", "red", "green", "blue", "stripe", "door", "rose")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Started:
    """A command at work."""

    def __init__(self, process: Any, folder: Path) -> None:
        self._process, self._folder = process, folder
        self.pid: int = process.pid

    def is_running(self) -> bool:
        poll = getattr(self._process, "poll", None)
        return poll() is None if poll else self._process.is_alive()

    def send(self, number: int) -> None:
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> Ended:
        if isinstance(self._process, subprocess.Popen):
            code = self._process.wait(PATIENCE)
        else:
            self._process.join(PATIENCE)
            code = self._process.exitcode
        assert code is not None, f"{self.pid} does not end"
        out, err = ((self._folder / name).read_bytes().decode() for name in ("out", "err"))
        assert "Traceback" not in err, err
        return Ended(code, out, err)


class Nouncut:
    """Starts the command."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache

    def __call__(self, *arguments: Any, code: int = 0, **options: Any) -> Ended:
        ended = self.start(*arguments, **options).wait()
        assert ended.code == code, f"{ended.code}: {ended.err}"
        return ended

    def start(
        self,
        *arguments: Any,
        cwd: Path | None = None,
        cold: bool = not IS_WARM,
        env: dict[str, str] | None = None,
        largest_file: int | None = None,
    ) -> Started:
        """Start the command; `cold` for a process that begins from nothing."""
        folder = Path(tempfile.mkdtemp(prefix="said-", dir=self.folder))
        request = {
            "argv": [str(COMMAND), *map(str, arguments)],
            "cwd": str(cwd or self.folder),
            "env": {**os.environ, **self._environment(), **(env or {})},
            "stdout": str(folder / "out"),
            "stderr": str(folder / "err"),
            "largest_file": largest_file,
        }
        return Started(_start_cold(request) if cold else _start_warm(request), folder)

    def _environment(self) -> dict[str, str]:
        return {
            "NOUNCUT_CACHE": str(self.cache),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "100",
            "PYTHONUTF8": "1",
        }


def _start_cold(request: dict[str, Any]) -> Any:
    def prepare() -> None:
        # Ignored in what a shell starts in the background.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if limit := request["largest_file"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with open(request["stdout"], "wb") as out, open(request["stderr"], "wb") as err:
        return subprocess.Popen(
            request["argv"],
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=prepare,
        )


def _start_warm(request: dict[str, Any]) -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WARM.stem])
    process = context.Process(target=runpy.run_path, args=(str(WARM), {"request": request}))
    with pytest.MonkeyPatch.context() as patch:
        # Where the server, which the first process starts, finds what it is to load.
        patch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
        process.start()
    return process


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    """Return where all commands keep features, so that words are encoded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def nouncut_in() -> type[Nouncut]:
    """Return a maker of commands that run in a folder and keep features in another."""
    return Nouncut


@pytest.fixture
def nouncut(tmp_path, cache) -> Nouncut:
    return Nouncut(tmp_path, cache)


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory) -> Path:
    """Return the folder of a tiny random CLIP model, which loads in no time."""
    save_clip = runpy.run_path(str(HERE.parent / "models" / "conftest.py"))["save_clip"]
    return save_clip(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def draw() -> Callable[..., list[Path]]:
    return draw_pictures


@pytest.fixture(scope="session")
def finished(tmp_path_factory, cache, tiny_clip, words) -> Path:
    """Return a run of 24 pictures in 4 clusters, made by the command. Tests must not change it."""
    folder = tmp_path_factory.mktemp("finished")
    draw_pictures(folder / "photos", range(24))
    run = ("cluster", "photos", "-k", 4, "--vocabulary", words, "--output", "run")
    Nouncut(folder, cache)(*run, "--model", tiny_clip)
    return folder / "run"


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    return wait_until


@pytest.fixture(scope="session")
def words(tmp_path_factory) -> Path:
    """Return a file of words; they suit nothing, but are encoded in no time."""
    return write_words(tmp_path_factory.mktemp("words"))


def write_words(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text("\n".join(WORDS))
    return path


def draw_pictures(folder: Path, numbers: range, size: tuple[int, int] = (32, 24)) -> list[Path]:
    """Draw pictures of four kinds: three colours, and stripes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in numbers:
        rng = np.random.default_rng(number)
        pixels = rng.integers(0, 60, (size[1], size[0], 3), dtype=np.uint8)
        kind = number % 4
        if kind == 3:
            pixels[::4] = 255
        else:
            pixels[..., kind] += 150
        paths.append(folder / f"{number}.png")
        Image.fromarray(pixels).save(paths[-1])
    return paths


def wait_until(condition: Callable[[], Any], process: Started) -> Any:
    """Wait until something holds while a command is at work."""
    end = time.monotonic() + PATIENCE
    while True:
        # In this order: it may end as soon as the condition holds.
        is_running = process.is_running()
        if found := condition():
            return found
        assert is_running, process.wait()
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.002)
