"""Edits of groups as data: checked, applied in their order, undone.

An edit is a dict with a `kind` and the fields of `_FIELDS`. Images are rows of the run. The group
that a merge names first, and the rest of a group that was split, keep their numbers; new groups get
the next free one. A part may have lost all its images since; its number stays taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError
from nouncut.runs.tables import unicode_text
from nouncut.words.spelling import fold_word

Edit = dict[str, Any]

UNDO: Edit = {"kind": "undo"}
REDO: Edit = {"kind": "redo"}
# The label of images that are in no group.
SET_ASIDE = -1
# Numbers of groups fit the tables; no run has as many groups.
_MOST_NUMBERS = 2**31 - 1
# States of the groups that undo and redo return to at once.
_MOST_REMEMBERED = 16
_FIELDS: dict[str, tuple[str, ...]] = {
    "rename": ("names",),
    "merge": ("clusters",),
    "split": ("cluster", "parts"),
    "move": ("rows", "to"),
    "group": ("parts",),
    "found": ("parts",),
    "set aside": ("rows",),
    "apart": ("clusters",),
    "undo": (),
    "redo": (),
}


@dataclass
class EditedGroups:
    """The groups of a run after some edits.

    `names` has the groups, some perhaps without images; `given` are the numbers of those that a
    person named, `found` of those that new images made; `successors` has the group that each
    computed cluster became part of; `by_hand` are the images that a person put where they are;
    `apart` the pairs of groups that a person said are not the same.
    """

    labels: NDArray[np.intp]
    names: dict[int, str]
    next_number: int
    successors: dict[int, int]
    by_hand: NDArray[np.bool_]
    given: set[int] = field(default_factory=set)
    apart: set[frozenset[int]] = field(default_factory=set)
    found: set[int] = field(default_factory=set)

    @classmethod
    def computed(cls, labels: NDArray[np.intp], names: Sequence[str]) -> EditedGroups:
        """Return the groups before any edit."""
        numbers = range(len(names))
        return cls(
            labels.copy(),
            dict(zip(numbers, names, strict=True)),
            len(names),
            dict(zip(numbers, numbers, strict=True)),
            np.zeros(len(labels), dtype=bool),
        )

    def copy(self) -> EditedGroups:
        """Return groups that can be edited without changing these."""
        return EditedGroups(
            self.labels.copy(),
            dict(self.names),
            self.next_number,
            dict(self.successors),
            self.by_hand.copy(),
            set(self.given),
            set(self.apart),
            set(self.found),
        )

    def take(self, rows: NDArray[np.intp] | slice) -> EditedGroups:
        """Return the groups of some of the images; some groups may have none of them."""
        return replace(self.copy(), labels=self.labels[rows], by_hand=self.by_hand[rows])

    def without_empty(self) -> EditedGroups:
        """Return the groups that have images.

        Others stay until the last edit: a group whose images are gone from the disk may get some.
        """
        groups = self.copy()
        for number in self.names.keys() - self.present:
            groups.end(number)
        return groups

    @property
    def present(self) -> set[int]:
        """The groups that have images."""
        return set(np.unique(self.labels).tolist()) - {SET_ASIDE}

    def apply(self, edit: Edit) -> None:
        """Apply an edit other than undo and redo; raise an `InputError` if it does not fit."""
        _APPLY[edit["kind"]](self, edit)

    def rows(self, number: int) -> NDArray[np.intp]:
        """Return the images of a group that exists."""
        if number not in self.names:
            raise InputError(f"There is no group {number}. {self._numbers()}")
        return np.flatnonzero(self.labels == number)

    def find(self, group: int | str) -> int:
        """Return the number of a group, given by its number or its name."""
        if isinstance(group, int | np.integer):
            self.rows(int(group))
            return int(group)
        named = self.called(group)
        if named is None:
            raise InputError(f'There is no group "{group}". {self._numbers()}')
        return named

    def called(self, name: str) -> int | None:
        """Return the number of the group with a name, if there is one."""
        wanted = fold_word(name)
        found = [number for number, other in self.names.items() if fold_word(other) == wanted]
        return found[0] if found else None

    def end(self, number: int) -> None:
        """Forget a group."""
        del self.names[number]
        self.given.discard(number)
        self.apart = {pair for pair in self.apart if number not in pair}
        self.found.discard(number)

    def add(self, rows: NDArray[np.intp], name: str) -> int:
        """Put images into a new group."""
        number = self.next_number
        self.next_number += 1
        self.names[number] = name
        self.labels[rows] = number
        return number

    def _numbers(self) -> str:
        numbers = sorted(self.names)
        shown = ", ".join(str(number) for number in numbers[:20])
        return f"The groups are {shown}{', ...' if len(numbers) > 20 else ''}."


def replay(groups: EditedGroups, edits: Sequence[Edit]) -> EditedGroups:
    """Return groups with edits applied, without those that were undone; none is empty."""
    groups = groups.copy()
    for number in undo_stacks(edits)[0]:
        groups.apply(edits[number])
    return groups.without_empty()


class Replay:
    """Applies edits to the computed groups, and continues from what it did before."""

    def __init__(self, groups: EditedGroups) -> None:
        self._recent: list[tuple[tuple[Any, ...], EditedGroups]] = [((), groups)]

    def __call__(self, logged: Sequence[Any]) -> EditedGroups:
        """Return the groups after edits, each the `edit` of an object that stays the same.

        None of the groups is empty.
        """
        done = tuple(logged[number] for number in undo_stacks([one.edit for one in logged])[0])
        recent = self._recent
        known, groups = max(
            (one for one in recent if done[: len(one[0])] == one[0]), key=lambda one: len(one[0])
        )
        if len(known) == len(done):
            return groups.without_empty()
        groups = groups.copy()
        for one in done[len(known) :]:
            groups.apply(one.edit)
        # The first state is never forgotten.
        self._recent = [recent[0], *recent[1:][-_MOST_REMEMBERED:], (done, groups)]
        return groups.without_empty()


def undo_stacks(edits: Sequence[Edit]) -> tuple[list[int], list[int]]:
    """Return which edits count, and which undone ones can be done again, the next one last."""
    done: list[int] = []
    undone: list[int] = []
    for number, edit in enumerate(edits):
        if edit["kind"] == "undo":
            if not done:
                raise InputError("There is nothing to undo.")
            undone.append(done.pop())
        elif edit["kind"] == "redo":
            if not undone:
                raise InputError("There is nothing to redo.")
            done.append(undone.pop())
        else:
            done.append(number)
            undone.clear()
    return done, undone


def clean_name(name: object) -> str:
    """Return a name on one line; an empty text if it is none."""
    return " ".join(unicode_text(name).split()) if isinstance(name, str) else ""


def checked_edit(found: object, n_images: int) -> Edit:
    """Return an edit from elsewhere with rows as arrays; raise a `ValueError` if it is none."""
    if not isinstance(found, dict) or found.get("kind") not in _FIELDS:
        raise ValueError("it is no edit")
    fields = _FIELDS[found["kind"]]
    if set(found) != {"kind", *fields}:
        raise ValueError(f"{found['kind']!r} needs the fields {', '.join(fields) or 'none'}")
    return {"kind": found["kind"]} | {name: _CHECKS[name](found[name], n_images) for name in fields}


def plain_edit(edit: Edit) -> Edit:
    """Return an edit as JSON has it; `checked_edit` reads it again."""
    return {name: _plain(value) for name, value in edit.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _number(value: object, n_images: int) -> int:
    if type(value) is not int or not 0 <= value < _MOST_NUMBERS:
        raise ValueError("the number of a group is wrong")
    return value


def _numbers(value: object, n_images: int) -> list[int]:
    numbers = [_number(one, n_images) for one in _list(value)]
    if len(set(numbers)) < len(numbers):
        raise ValueError("it has a group twice")
    return numbers


def _rows(value: object, n_images: int) -> NDArray[np.intp]:
    numbers = _list(value)
    if not all(type(one) is int and 0 <= one < n_images for one in numbers):
        raise ValueError(f"it has images that are not from 0 to {n_images - 1}")
    rows = np.array(numbers, dtype=np.intp)
    if np.any(np.diff(rows) <= 0):
        raise ValueError("its images are not in order")
    return rows


def _some_rows(value: object, n_images: int) -> NDArray[np.intp]:
    rows = _rows(value, n_images)
    if not len(rows):
        raise ValueError("it has no images")
    return rows


def _parts(value: object, n_images: int) -> list[dict[str, Any]]:
    parts = []
    for part in _list(value):
        if not isinstance(part, dict) or set(part) != {"name", "rows"}:
            raise ValueError("a part needs a name and rows")
        parts.append({"name": _name(part["name"]), "rows": _rows(part["rows"], n_images)})
    every = np.concatenate([part["rows"] for part in parts]) if parts else np.empty(0)
    if not parts or len(np.unique(every)) < len(every):
        raise ValueError("its parts are empty or overlap")
    return parts


def _names(value: object, n_images: int) -> dict[int, str]:
    if not isinstance(value, dict) or not value:
        raise ValueError("it has no names")
    if not all(key.isascii() and key.isdigit() and len(key) < 10 for key in value):
        raise ValueError("the number of a group is wrong")
    return {int(key): _name(name) for key, name in value.items()}


def _name(value: object) -> str:
    name = clean_name(value)
    if not name:
        raise ValueError("a name is empty")
    return name


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a list is missing")
    return value


_CHECKS: Mapping[str, Callable[[object, int], Any]] = {
    "names": _names,
    "clusters": _numbers,
    "cluster": _number,
    "parts": _parts,
    "rows": _some_rows,
    "to": _number,
}


def _rename(groups: EditedGroups, edit: Edit) -> None:
    for number in edit["names"]:
        groups.rows(number)
    groups.names.update(edit["names"])
    groups.given.update(edit["names"])


def _merge(groups: EditedGroups, edit: Edit) -> None:
    first, *others = edit["clusters"]
    if not others:
        raise InputError("A merge needs at least two groups.")
    for number in edit["clusters"]:
        groups.rows(number)
    groups.labels[np.isin(groups.labels, others)] = first
    # What was kept apart from one of them is kept apart from all of them together.
    pairs = (frozenset(first if n in others else n for n in pair) for pair in groups.apart)
    groups.apart = {pair for pair in pairs if len(pair) == 2}
    for number in others:
        groups.end(number)
    for cluster, successor in groups.successors.items():
        if successor in others:
            groups.successors[cluster] = first


def _split(groups: EditedGroups, edit: Edit) -> None:
    inside = groups.rows(edit["cluster"])
    gone = np.concatenate([part["rows"] for part in edit["parts"]])
    if not np.isin(gone, inside).all():
        raise InputError(f"The parts are not a part of group {edit['cluster']}.")
    for part in edit["parts"]:
        groups.add(part["rows"], part["name"])


def _move(groups: EditedGroups, edit: Edit) -> None:
    groups.rows(edit["to"])
    groups.labels[edit["rows"]] = edit["to"]
    groups.by_hand[edit["rows"]] = True


def _group(groups: EditedGroups, edit: Edit) -> None:
    for part in edit["parts"]:
        groups.given.add(groups.add(part["rows"], part["name"]))
        groups.by_hand[part["rows"]] = True


def _found(groups: EditedGroups, edit: Edit) -> None:
    for part in edit["parts"]:
        groups.found.add(groups.add(part["rows"], part["name"]))


def _set_aside(groups: EditedGroups, edit: Edit) -> None:
    groups.labels[edit["rows"]] = SET_ASIDE
    groups.by_hand[edit["rows"]] = True


def _apart(groups: EditedGroups, edit: Edit) -> None:
    if len(edit["clusters"]) != 2:
        raise InputError("Two groups can be kept apart, not more or fewer.")
    for number in edit["clusters"]:
        groups.rows(number)
    groups.apart.add(frozenset(edit["clusters"]))


_APPLY: Mapping[str, Callable[[EditedGroups, Edit], None]] = {
    "rename": _rename,
    "merge": _merge,
    "split": _split,
    "move": _move,
    "group": _group,
    "found": _found,
    "set aside": _set_aside,
    "apart": _apart,
}
