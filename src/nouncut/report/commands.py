"""What to do next, as commands to copy."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass

from nouncut.runs.run import Run


@dataclass(frozen=True)
class NextStep:
    """Something to do with a run."""

    purpose: str
    command: str


def next_steps(run: Run) -> list[NextStep]:
    """List what can be done with a run."""
    has_images = run.manifest.get("source_kind") != "features"
    things = "images" if has_images else "features"
    place = _place(run)
    forms = "as a table, or as folders of images" if has_images else "as a table"
    return [
        *_another_number(run, has_images),
        NextStep(f"Take the clusters elsewhere: {forms}.", _shell("nouncut", "export", place)),
        NextStep(
            f"Put new {things} into these clusters.",
            _shell("nouncut", "predict", place, f"NEW_{things.upper()}"),
        ),
    ]


def names_command(run: Run) -> str:
    """Return the command that keeps new names of clusters."""
    return _shell("nouncut", "report", _place(run), "--names", "names.json")


def _place(run: Run) -> str:
    return os.fspath(run.directory).encode("utf-8", "replace").decode()


def _another_number(run: Run, has_images: bool) -> list[NextStep]:
    """Propose the runner-up, or the next number where there is none."""
    n_clusters = int(run.manifest["n_clusters"])
    count = run.manifest.get("cluster_count") or {}
    others = [int(number) for number, _ in count.get("candidates") or [] if number != n_clusters]
    other = others[0] if others else n_clusters + 1
    if other > int(run.manifest["n_images"]):
        return []
    purpose = f"Too coarse or too fine? Ask for another number of clusters, such as {other:,}."
    again = " Nothing is encoded again." if has_images else ""
    sources = [str(source) for source in run.manifest.get("source") or []] or ["FOLDER"]
    return [NextStep(purpose + again, _shell("nouncut", "cluster", *sources, "-k", str(other)))]


def _shell(*words: str) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
