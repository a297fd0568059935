"""Commands to run next, ready to copy from the page."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass

from nouncut.report.said import say
from nouncut.runs.changes import read_changes
from nouncut.runs.run import Run


@dataclass(frozen=True)
class NextStep:
    """A command and what it is good for."""

    purpose: str
    command: str


def next_steps(run: Run) -> list[NextStep]:
    """List commands that go on from a run."""
    things = "images" if run.has_images else "features"
    directory = _printable(run)
    kind = "images" if run.has_images else "rows"
    return [
        NextStep(say("next.explore"), _shell("nouncut", "explore", directory)),
        *_other_count(run),
        NextStep(say(f"next.export.{kind}"), _shell("nouncut", "export", directory)),
        *(_updates(run) if run.has_images and run.whole is run else ()),
        NextStep(
            say(f"next.assign.{kind}"),
            _shell("nouncut", "predict", directory, f"NEW_{things.upper()}"),
        ),
    ]


def _updates(run: Run) -> list[NextStep]:
    """Propose to bring a run up to date, and what its last update advised."""
    update, changes = ("nouncut", "update", _printable(run)), read_changes(run.manifest)
    steps = [NextStep(say("next.update"), _shell(*update))]
    if changes and changes.why_recluster:
        purpose = say("next.recluster", why=changes.why_recluster)
        steps.append(NextStep(purpose, _shell(*update, "--recluster")))
    return steps


def names_command(run: Run) -> str:
    """Return the command that keeps names edited on the page."""
    return _shell("nouncut", "report", _printable(run), "--names", "names.json")


def _other_count(run: Run) -> list[NextStep]:
    """Propose the runner-up number of clusters, or one more cluster if there is none."""
    n_clusters = int(run.manifest["n_clusters"])
    count = run.manifest.get("cluster_count") or {}
    others = [int(number) for number, _ in count.get("candidates") or [] if number != n_clusters]
    other = others[0] if others else n_clusters + 1
    # A large run needs the cluster that it was made on, whose address is not known here.
    if other > int(run.manifest["n_images"]) or run.whole is not run:
        return []
    purpose = say(f"next.count.{'images' if run.has_images else 'rows'}", number=other)
    sources = [str(source) for source in run.manifest.get("source") or []] or ["FOLDER"]
    return [NextStep(purpose, _shell("nouncut", "cluster", *sources, "-k", str(other)))]


def _printable(run: Run) -> str:
    return os.fspath(run.directory).encode("utf-8", "replace").decode()


def _shell(*words: str) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
