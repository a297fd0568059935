"""The run as JSON for the page: groups, tree, history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nouncut.errors import printable_path
from nouncut.explore.exporting import describe_exports
from nouncut.report.page import run_title
from nouncut.report.script_data import names_by_number, set_aside_number
from nouncut.runs.edits import undo_stacks

if TYPE_CHECKING:
    from pathlib import Path

    from nouncut.explore.session import View
    from nouncut.runs.run import Run


def describe_run(view: View, folder: Path | None) -> dict[str, Any]:
    """Return what the page shows of a run besides its images."""
    run = view.run
    undo, redo = _next_steps(run)
    return {
        "id": run.manifest.get("id"),
        "title": run_title(run),
        "version": view.version,
        "hasImages": run.has_images,
        "nImages": run.n_images,
        "nAll": run.whole.n_images,
        "canReadTexts": can_read_texts(run),
        "hasMap": any(map(run.has_array, ("layout", "embedding", "features"))),
        "canSplit": not run.whole.is_large,
        "hasGraph": run.has_array("graph_data"),
        "folder": printable_path(folder) if folder else "",
        "separator": os.sep,
        "names": names_by_number(run),
        "setAside": set_aside_number(run),
        "given": sorted(run.groups.given),
        "groups": [_group(row) for row in run.clusters.to_pylist()],
        "tree": run.tree.to_json(),
        "history": [_past(one) for one in run.history],
        "undo": undo,
        "redo": redo,
        "nOutliers": int(run.assignments["outlier"].to_numpy().sum()),
        "nSetAside": run.whole.n_set_aside,
        "exports": describe_exports(run),
    }


def can_read_texts(run: Run) -> bool:
    """Return whether the run's model reads texts."""
    return run.has_array("semantic") and bool((run.manifest.get("model") or {}).get("name"))


def _group(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": row["cluster"],
        "name": row["name"] or "",
        "size": row["size"],
        "cohesion": row["cohesion"],
        "guess": bool(row["guess"]),
        "nameConfidence": row["name_confidence"] or None,
        "words": row["more_words"] or [],
        "gloss": row["gloss"] or "",
        "exemplars": row["exemplars"],
        "borderline": row["borderline"],
    }


def _past(one: Any) -> dict[str, Any]:
    return {
        "text": one.text,
        "nImages": one.n_images,
        "time": one.time,
        "isUndone": one.is_undone,
    }


def _next_steps(run: Run) -> tuple[str | None, str | None]:
    """Return what undo would undo, and what redo would do again."""
    done, undone = undo_stacks([one.edit for one in run.edits])
    last, again = (run.edits[stack[-1]].text if stack else None for stack in (done, undone))
    return last, again
