"""Exports that the page asks for: what they would write, and writing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nouncut.errors import ParameterError, printable_path
from nouncut.exports.registry import EXPORTS, export_run
from nouncut.runs.sample import whole_rows

if TYPE_CHECKING:
    from nouncut.runs.run import Run

_SHOWN_FILES = 50
_SHOWN_PROBLEMS = 3


def describe_exports(run: Run) -> list[dict[str, Any]]:
    """Return the formats that the run can be exported to."""
    return [
        {"kind": kind, "about": export.about, "needsImages": export.needs_images}
        for kind, export in EXPORTS.items()
        if run.has_images or not export.needs_images
    ]


def export(run: Run, wanted: dict[str, Any]) -> dict[str, Any]:
    """Write an export, or say what it would write."""
    kind, options = wanted.get("kind"), wanted.get("options") or {}
    if not isinstance(kind, str) or not isinstance(options, dict):
        raise ParameterError("An export needs a kind and options.")
    rows, groups = wanted.get("rows"), wanted.get("groups")
    if rows is not None:
        rows = whole_rows(run, np.array(whole_numbers(rows, run.n_images), np.intp))
    done = export_run(
        run.whole,
        kind,
        _place(run, wanted.get("to")),
        rows=rows,
        groups=None if groups is None else whole_numbers(groups),
        preview=bool(wanted.get("preview")),
        **options,
    )
    kept = f", {done.n_kept:,} were there already" if done.n_kept else ""
    problems = "".join(f" {problem}" for problem in done.problems[:_SHOWN_PROBLEMS])
    return {
        "place": printable_path(done.path),
        "nFiles": done.n_files,
        "nImages": done.n_images,
        "files": [_below(file, done.path) for file in done.files[:_SHOWN_FILES]],
        "text": f"{done.n_written:,} written{kept}.{problems} {done.hint}".strip(),
    }


def whole_numbers(values: Any, below: int = 2**31) -> list[int]:
    """Return a list of numbers from JSON; raise a `ParameterError` if it is none."""
    if not isinstance(values, list) or not all(
        type(value) is int and 0 <= value < below for value in values
    ):
        raise ParameterError("The request needs a list of numbers of images or groups.")
    return values


def _place(run: Run, to: Any) -> Path | None:
    if to is None or to == "":
        return None
    if not isinstance(to, str) or "\0" in to:
        raise ParameterError("The place of an export is a path.")
    return run.directory / "exports" / Path(to).expanduser()


def _below(file: Path, place: Path) -> str:
    folder = place.parent if file == place else place
    return printable_path(file.relative_to(folder) if file.is_relative_to(folder) else file)
