"""Run the installed command in a process that has the slow libraries already.

Run by path with `request` among the globals.
"""

from __future__ import annotations

import os
import resource
import runpy
import signal
import sys
from typing import Any


def become_the_command(request: dict[str, Any]) -> None:
    """Go on as a fresh process would begin."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for stream in (sys.stdout, sys.stderr):
        with open(request[stream.name.strip("<>")], "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    # Ignored in what a shell starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if limit := request["largest_file"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sys.argv = request["argv"]
    runpy.run_path(sys.argv[0], run_name="__main__")


if "request" in globals():
    become_the_command(globals()["request"])
