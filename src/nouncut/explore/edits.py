"""Edits that the page asks for, as plans for the edit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nouncut.errors import ParameterError
from nouncut.explore.exporting import whole_numbers
from nouncut.runs.edit_log import LoggedEdit
from nouncut.runs.editing import (
    plan_apart,
    plan_merge,
    plan_move,
    plan_redo,
    plan_rename,
    plan_set_aside,
    plan_split,
    plan_undo,
)
from nouncut.runs.sample import whole_rows

if TYPE_CHECKING:
    from nouncut.runs.editing import Plan
    from nouncut.runs.run import Run


def read_plan(wanted: dict[str, Any], run: Run) -> Plan:
    """Return the plan of an edit in a request; raise a `ParameterError` if it is none."""
    verb = wanted.get("verb")
    if verb == "merge":
        return plan_merge(whole_numbers(wanted.get("groups")))
    if verb == "apart":
        return plan_apart(whole_numbers(wanted.get("groups")))
    if verb == "split":
        group, parts = _number(wanted.get("group")), _parts(wanted.get("parts", "auto"))
        return plan_split(group, parts, _names(wanted.get("names", [])))
    if verb == "move":
        to = wanted.get("to")
        to = to if isinstance(to, str) else _number(to)
        return plan_move(_rows(wanted, run), to)
    if verb == "rename":
        return plan_rename({_number(wanted.get("group")): wanted.get("name", "")})
    if verb == "set aside":
        return plan_set_aside(_rows(wanted, run))
    if verb == "undo":
        return plan_undo
    if verb == "redo":
        return plan_redo
    raise ParameterError("There is no such edit.")


def describe_edit(run: Run, done: LoggedEdit, version: str) -> dict[str, Any]:
    """Return what an edit of a run does, or would do."""
    found = {"text": done.text, "nImages": done.n_images, "version": version}
    if done.edit["kind"] != "split":
        return found
    number, parts = done.edit["cluster"], done.edit["parts"]
    new = [{"name": part["name"], "rows": part["rows"].tolist()} for part in parts]
    gone = np.concatenate([part["rows"] for part in parts])
    rest = np.setdiff1d(run.groups.rows(number), gone)
    return found | {"parts": [{"name": run.groups.names[number], "rows": rest.tolist()}, *new]}


def _rows(wanted: dict[str, Any], run: Run) -> list[int]:
    """Return rows in the run of all images."""
    rows = whole_numbers(wanted.get("rows"), run.n_images)
    return [int(row) for row in whole_rows(run, np.array(rows, np.intp))]


def _number(value: Any) -> int:
    return whole_numbers([value])[0]


def _names(value: Any) -> list[str | None]:
    if not isinstance(value, list) or not all(one is None or isinstance(one, str) for one in value):
        raise ParameterError("`names` must be a list of texts.")
    return value


def _parts(value: Any) -> Any:
    return value if value == "auto" else _number(value)
