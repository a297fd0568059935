"""Run the installed command in a process that has the slow libraries already.

Imported by the process that others are forked from; then run by path, in a fork, with `request`
among the globals.
"""

from __future__ import annotations

import gc
import os
import resource
import runpy
import signal
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

PACKAGES = ("cli", "runs", "method", "layout", "report", "exports", "explore", "words")
LIBRARIES = (
    "nouncut.workflow",
    "nouncut.models.onnx_clip",
    "nouncut.models.torch_clip",
    "nouncut.models.mini",
    "nouncut.models.torch_text",
    "transformers.models.clip.modeling_clip",
    "transformers.models.auto.tokenization_auto",
)


def load_libraries() -> None:
    """Import what is slow to import, read WordNet, and compile the templates of the report."""
    for name in LIBRARIES:
        import_module(name)
    for package in PACKAGES:
        own = import_module(f"nouncut.{package}")
        for found in walk_packages(own.__path__, f"{own.__name__}."):
            import_module(found.name)
    from PIL import Image

    from nouncut.report.render import make_environment
    from nouncut.words.readability import mentions
    from nouncut.words.wordnet import synsets_of

    Image.init()
    environment = make_environment("nouncut.report")
    for name in environment.list_templates():
        environment.get_template(name)
    mentions()
    synsets_of("cat")
    # Garbage collections in forks would copy the pages of all that is loaded.
    gc.collect()
    gc.freeze()


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


if __name__ == "warm_command":
    load_libraries()
if "request" in globals():
    become_the_command(globals()["request"])
