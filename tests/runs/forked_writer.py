"""A process that forks a writer of runs for every line it reads: "FIRST LAST KILL_AT DIRECTORY".

The writer writes the runs FIRST, FIRST + 1, ... below LAST, each of which can be told by its number
in every file. It kills itself before its file operation number KILL_AT, if that is not 0. Where
there is nothing to write, it keeps the directory locked.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa

from nouncut.errors import NouncutError
from nouncut.runs.edit_log import rename_entry
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter

OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir"}


def numbered_contents(number: int) -> RunContents:
    n_images = 300 + number % 7
    row = {"path": f"{number}.jpg", "cluster": 0, "name": str(number), "outlier": False}
    cluster = {"cluster": 0, "name": str(number), "size": n_images}
    return RunContents(
        manifest={"number": number},
        assignments=pa.Table.from_pylist([row] * n_images, ASSIGNMENTS_SCHEMA),
        clusters=pa.Table.from_pylist(
            [cluster | {"exemplars": [], "borderline": []}], CLUSTERS_SCHEMA
        ),
        images=images_table([f"{number}.jpg"] * n_images),
        arrays={name: np.full((n_images, 64), number) for name in ("features", f"extra_{number}")},
        edits=[rename_entry({0: f"my {number}"})],
    )


def kill_before_operation(kill_at: int, directory: str) -> None:
    count = 0

    def watch(event: str, arguments: tuple) -> None:
        nonlocal count
        if event in OPERATIONS and str(arguments[0]).startswith(directory):
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def write_runs(directory: str, first: int, last: int, kill_at: int) -> str:
    if kill_at:
        kill_before_operation(kill_at, directory)
    try:
        if first == last:
            with RunWriter(directory):
                os.write(1, b"locked\n")
                time.sleep(1000)
        for number in range(first, last):
            contents = numbered_contents(number)
            with RunWriter(directory) as writer:
                writer.start(contents.manifest)
                writer.finish(contents)
    except NouncutError as error:
        return str(error)
    return "done"


def main() -> None:
    # What the first run costs is paid once, not by every writer.
    with tempfile.TemporaryDirectory() as folder:
        write_runs(folder, 0, 1, kill_at=0)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            # Not written by the parent, whose line might come after what the writer says.
            os.write(1, f"{os.getpid()}\n".encode())
            *numbers, directory = line.rstrip("\n").split(" ", 3)
            answer = write_runs(directory, *map(int, numbers))
            os.write(1, f"{answer}\n".encode())
            os._exit(0)
        os.waitpid(pid, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    main()
