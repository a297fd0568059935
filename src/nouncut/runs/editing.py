"""The verbs that edit groups: what each would do, and doing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, ParameterError
from nouncut.runs.edit_log import LoggedEdit, now
from nouncut.runs.edits import (
    REDO,
    UNDO,
    Edit,
    EditedGroups,
    checked_edit,
    clean_name,
    plain_edit,
    replay,
    undo_stacks,
)
from nouncut.runs.explain import RunEvidence, find_row
from nouncut.words.spelling import fold_word

if TYPE_CHECKING:
    from nouncut.runs.run import Run

# Up to this many images are looked up one by one.
_MANY = 20
_NUMBERED = re.compile(r"^(cluster|group) \d+$")

Group = int | str
Image = AnyPath | int
# Makes an edit of the groups as they are when it is appended.
Plan = Callable[["Run"], LoggedEdit]


@dataclass(frozen=True)
class PastEdit:
    """An edit in the history of a run.

    Parameters
    ----------
    text : str
        What it did.
    n_images : int
        Number of images that it touched.
    time : str
        When, in ISO 8601; empty for names that an earlier version saved.
    is_undone : bool
        Whether it was undone.
    """

    text: str
    n_images: int
    time: str
    is_undone: bool


def edit_run(run: Run, plan: Plan) -> tuple[LoggedEdit, ...]:
    """Append an edit to the log of a run, and return all its edits."""
    return run.log.append(lambda edits: plan(run.with_edits(edits))).edits


def plan_merge(clusters: Sequence[Group]) -> Plan:
    """Merge groups into the first of them."""

    def plan(run: Run) -> LoggedEdit:
        groups = run.groups
        numbers = [groups.find(cluster) for cluster in clusters]
        if len(set(numbers)) < 2:
            raise InputError("A merge needs at least two different groups.")
        numbers = list(dict.fromkeys(numbers))
        first, *others = (_shown(groups, number) for number in numbers)
        n_images = sum(len(groups.rows(number)) for number in numbers[1:])
        text = f"merge {', '.join(others)} into {first}"
        return _tried(groups, {"kind": "merge", "clusters": numbers}, text, n_images)

    return plan


def plan_split(
    cluster: Group,
    parts: int | Literal["auto"] = "auto",
    names: Sequence[str | None] = (),
) -> Plan:
    """Split a group by cutting its part of the graph.

    `names` are for the parts, of which the first keeps its own; None leaves the choice to us.
    """

    def plan(run: Run) -> LoggedEdit:
        from nouncut.runs.subgroups import split_cluster

        groups = run.groups
        number = groups.find(cluster)
        rows = split_cluster(run, number, parts)
        words = RunEvidence(run).part_words(rows)[1:]
        free = _free_names(groups, groups.names[number], words)
        given = [None if name is None else _name(name) for name in names[1 : len(rows)]]
        chosen = [name or other for name, other in zip_longest(given, free)]
        numbered = dict(enumerate(chosen, groups.next_number))
        _check_distinct(groups.names | numbered, numbered)
        new = [{"name": n, "rows": part} for n, part in zip(chosen, rows[1:], strict=True)]
        sizes = ", ".join(f"{len(part):,}" for part in rows)
        text = f"split {_shown(groups, number)} into {len(rows)} groups of {sizes} images"
        edit = {"kind": "split", "cluster": number, "parts": new}
        return _tried(groups, edit, text, sum(map(len, rows)))

    return plan


def plan_move(images: Image | Iterable[Image], to: Group) -> Plan:
    """Move images to a group: a number, the name of a group, or the name of a new one."""

    def plan(run: Run) -> LoggedEdit:
        groups = run.groups
        number = groups.called(_name(to)) if isinstance(to, str) else groups.find(to)
        rows = _find_rows(run, images)
        if number is None:
            name = _name(to)
            text = f'move {_images(rows)} to the new group "{name}"'
            return _tried(groups, _new_group(rows, name), text, len(rows))
        rows = rows[groups.labels[rows] != number]
        if not len(rows):
            raise InputError(f"All of these images are in {_shown(groups, number)} already.")
        text = f"move {_images(rows)} to {_shown(groups, number)}"
        return _tried(groups, {"kind": "move", "rows": rows, "to": number}, text, len(rows))

    return plan


def plan_rename(names: Mapping[Any, str]) -> Plan:
    """Give groups, by number or name, new names."""

    def plan(run: Run) -> LoggedEdit:
        groups = run.groups
        new = {groups.find(group): _name(name) for group, name in names.items()}
        new = {number: name for number, name in new.items() if groups.names[number] != name}
        if not new:
            raise InputError("The groups have these names already.")
        _check_distinct(groups.names | new, new)
        n_images = sum(len(groups.rows(number)) for number in new)
        parts = (f'{_shown(groups, number)} to "{name}"' for number, name in new.items())
        edit = {"kind": "rename", "names": new}
        return _tried(groups, edit, f"rename {', '.join(parts)}", n_images)

    return plan


def plan_set_aside(images: Image | Iterable[Image]) -> Plan:
    """Take images out of all groups."""

    def plan(run: Run) -> LoggedEdit:
        rows = _find_rows(run, images)
        rows = rows[run.groups.labels[rows] >= 0]
        if not len(rows):
            raise InputError("All of these images are set aside already.")
        edit = {"kind": "set aside", "rows": rows}
        return _tried(run.groups, edit, f"set aside {_images(rows)}", len(rows))

    return plan


def plan_apart(clusters: Sequence[Group]) -> Plan:
    """Remember that two groups are not the same."""

    def plan(run: Run) -> LoggedEdit:
        groups = run.groups
        numbers = [groups.find(cluster) for cluster in clusters]
        if len(numbers) != 2 or len(set(numbers)) < 2:
            raise InputError("Name two different groups to keep them apart.")
        first, second = (_shown(groups, number) for number in numbers)
        if frozenset(numbers) in groups.apart:
            raise InputError(f"{first} and {second} are kept apart already.")
        edit = {"kind": "apart", "clusters": numbers}
        return _tried(groups, edit, f"keep {first} apart from {second}", 0)

    return plan


def plan_undo(run: Run) -> LoggedEdit:
    """Undo the last edit that counts."""
    done, _ = undo_stacks(_plain(run))
    undo_stacks([*_plain(run), UNDO])
    last = run.edits[done[-1]]
    return LoggedEdit(UNDO, now(), f"undo: {last.text}", last.n_images)


def plan_redo(run: Run) -> LoggedEdit:
    """Do again what was undone last."""
    _, undone = undo_stacks(_plain(run))
    undo_stacks([*_plain(run), REDO])
    last = run.edits[undone[-1]]
    return LoggedEdit(REDO, now(), f"redo: {last.text}", last.n_images)


def past_edits(edits: Sequence[LoggedEdit]) -> list[PastEdit]:
    """Return all edits, the oldest first, and which of them are undone."""
    done = set(undo_stacks([one.edit for one in edits])[0])
    return [
        PastEdit(one.text, one.n_images, one.time, number not in done)
        for number, one in enumerate(edits)
        if one.edit["kind"] not in ("undo", "redo")
    ]


def _plain(run: Run) -> list[Edit]:
    return [one.edit for one in run.edits]


def _tried(groups: EditedGroups, edit: Edit, text: str, n_images: int) -> LoggedEdit:
    """Return an edit, as it will be read again, that was found to fit the groups."""
    edit = checked_edit(plain_edit(edit), len(groups.labels))
    replay(groups, [edit])
    return LoggedEdit(edit, now(), clean_name(text), n_images)


def _new_group(rows: NDArray[np.intp], name: str) -> Edit:
    return {"kind": "group", "parts": [{"name": name, "rows": rows}]}


def _find_rows(run: Run, images: Image | Iterable[Image]) -> NDArray[np.intp]:
    """Return the rows of images, in order and each once."""
    one = isinstance(images, int | np.integer | str) or hasattr(images, "__fspath__")
    every: list[Any] = [images] if one else list(images)  # type: ignore[arg-type]
    if not every:
        raise InputError("There are no images to move.")
    if all(isinstance(image, int | np.integer) for image in every):
        found = np.unique(np.array(every, dtype=np.intp))
        find_row(run, found[0]), find_row(run, found[-1])  # raise if there is no such image
        return found
    known: dict[str, int] = {}
    if len(every) > _MANY:
        paths = run.images["path"].slice(0, len(run.groups.labels)).to_pylist()
        known = dict(zip(reversed(paths), reversed(range(len(paths))), strict=True))
    rows = [known[str(image)] if str(image) in known else find_row(run, image) for image in every]
    return np.unique(np.array(rows, dtype=np.intp))


def _check_distinct(names: Mapping[int, str], new: Mapping[int, str]) -> None:
    """Refuse new names that other groups have: two groups of one name should be one group."""
    first: dict[str, int] = {}
    for number in sorted(names, key=lambda number: number in new):
        other = first.setdefault(fold_word(names[number]), number)
        if other != number and number in new:
            raise InputError(
                f'"{new[number]}" is the name of group {other} already. Choose another name for '
                f"group {number}, or merge groups {other} and {number}."
            )


def _free_names(groups: EditedGroups, name: str, words: Sequence[str | None]) -> list[str]:
    """Return names for parts of a group: words that no group has yet, or its name and a number."""
    taken = {fold_word(other) for other in groups.names.values()}
    # Groups without words of their own are called "group 0", "group 1" and so on.
    name = _NUMBERED.sub(r"\1", name)
    names = []
    for word in words:
        numbered = (f"{name} {number}" for number in count_from(2))
        free = (one for one in chain([word], numbered) if one and fold_word(one) not in taken)
        names.append(next(free))
        taken.add(fold_word(names[-1]))
    return names


def _name(name: object) -> str:
    clean = clean_name(name)
    if not clean:
        raise ParameterError("The name of a group must not be empty.")
    return clean


def _shown(groups: EditedGroups, number: int) -> str:
    n_images = len(groups.rows(number))
    return f'"{groups.names[number]}" ({number}; {_counted(n_images)})'


def _images(rows: NDArray[np.intp]) -> str:
    return _counted(len(rows))


def _counted(n_images: int) -> str:
    return f"{n_images:,} image{'s' * (n_images != 1)}"
