"""Edits of an earlier run, applied to the groups of a new one.

Images are the same if their contents are. A cluster of the earlier run becomes the new cluster that
has most of its images; a group that an edit made becomes the group that the carried edit makes.
Names are not carried here: they follow the images of their groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.checks import warn_user
from nouncut.errors import InputError, printable_path
from nouncut.runs.edit_log import LoggedEdit
from nouncut.runs.edits import Edit, EditedGroups, undo_stacks
from nouncut.runs.run import Run

_SHOWN = 5


class NewImages(NamedTuple):
    """The images of a new run: what identifies them, and their paths."""

    ids: Sequence[str]
    paths: Sequence[str]


@dataclass
class CarriedEdits:
    """Edits that still make sense in a new run, and descriptions of those that do not."""

    kept: list[LoggedEdit] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def warn(self) -> None:
        """Say which edits were dropped."""
        if not self.dropped:
            return
        texts = "; ".join(printable_path(text) for text in self.dropped[:_SHOWN])
        more = f"; and {len(self.dropped) - _SHOWN:,} more" * (len(self.dropped) > _SHOWN)
        warn_user(
            f"Edits of the run before that no longer suit the groups were dropped: {texts}{more}."
        )


def carry_edits(
    run: Run,
    old_ids: Sequence[str],
    images: NewImages,
    groups: EditedGroups,
) -> CarriedEdits:
    """Apply the edits of an earlier run to new groups, as far as they still make sense."""
    carried = CarriedEdits()
    if not run.edits:
        return carried
    old = EditedGroups.computed(run.computed.labels, run.all_clusters["name"].to_pylist())
    counterparts = _counterparts(old_ids, old.labels, images.ids, groups.labels)
    translate = _Translator(_NewRows(run, old_ids, images), groups, counterparts)
    for number in undo_stacks([one.edit for one in run.edits])[0]:
        logged = run.edits[number]
        n_old, n_new = old.next_number, groups.next_number
        old.apply(logged.edit)
        if logged.edit["kind"] == "rename":
            continue
        try:
            edit = translate(logged.edit, n_old)
            if len(edit.get("clusters", "12")) == 1 or not edit.get("parts", True):
                continue  # the new run has them as clusters
            groups.apply(edit)
        except (InputError, _GoneError):
            carried.dropped.append(logged.text)
            continue
        carried.kept.append(replace(logged, edit=edit))
        translate.learn(range(n_old, old.next_number), range(n_new, groups.next_number))
    return carried


def _counterparts(
    old_ids: Sequence[str],
    old_labels: NDArray[np.intp],
    ids: Sequence[str],
    labels: NDArray[np.intp],
) -> dict[int, int]:
    """Return the new clusters that have more than half of the images of earlier ones."""
    label_of = dict(zip(ids, labels.tolist(), strict=True))
    shared: dict[int, Counter[int]] = {}
    for image, label in zip(old_ids, old_labels.tolist(), strict=True):
        if image in label_of:
            shared.setdefault(label, Counter())[label_of[image]] += 1
    found = {label: counts.most_common(1)[0] for label, counts in shared.items()}
    return {label: new for label, (new, n) in found.items() if 2 * n > shared[label].total()}


class _GoneError(Exception):
    """The images or groups of an edit are not in the new run."""


class _NewRows:
    """Finds the rows of a new run that are the images in some rows of an earlier one."""

    def __init__(self, run: Run, old_ids: Sequence[str], images: NewImages) -> None:
        self._ids, self._paths = old_ids, run.images["path"].to_pylist()
        self._by_path = {
            key: row for row, key in enumerate(zip(images.ids, images.paths, strict=True))
        }
        self._by_id: dict[str, list[int]] = {}
        for row, image in enumerate(images.ids):
            self._by_id.setdefault(image, []).append(row)

    def __call__(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.unique(np.array(list(self._find(rows.tolist())), dtype=np.intp))

    def _find(self, rows: Iterable[int]) -> Iterable[int]:
        for row in rows:
            # Of several copies the one at the same path, if it is still there.
            same = self._by_path.get((self._ids[row], self._paths[row]))
            yield from [same] if same is not None else self._by_id.get(self._ids[row], [])


class _Translator:
    """Turns edits of an earlier run into edits of a new one."""

    def __init__(
        self, new_rows: _NewRows, groups: EditedGroups, counterparts: dict[int, int]
    ) -> None:
        self._rows, self._groups, self._counterparts = new_rows, groups, counterparts
        self._kinds: Mapping[str, Callable[[Edit], Edit]] = {
            "merge": self._merge,
            "split": self._split,
            "move": self._move,
            "group": self._group,
            "apart": self._apart,
            "found": self._found,
            "set aside": lambda edit: {"rows": self._some(edit["rows"])},
        }
        self._made: list[int] = []
        self._next = 0

    def __call__(self, edit: Edit, next_number: int) -> Edit:
        """Return the edit; `next_number` is that of the first group that it made."""
        self._made, self._next = [], next_number
        return {"kind": edit["kind"]} | self._kinds[edit["kind"]](edit)

    def learn(self, old: Sequence[int], new: Sequence[int]) -> None:
        """Remember which groups the last edit made."""
        made = (old[part] for part in self._made)
        self._counterparts.update(zip(made, new, strict=True))

    def _some(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        found = self._rows(rows)
        if not len(found):
            raise _GoneError
        return found

    def _number(self, number: int) -> int:
        if number not in self._counterparts:
            raise _GoneError
        return self._counterparts[number]

    def _merge(self, edit: Edit) -> Edit:
        found = [self._number(number) for number in edit["clusters"]]
        return {"clusters": list(dict.fromkeys(found))}

    def _apart(self, edit: Edit) -> Edit:
        first, second = (self._number(number) for number in edit["clusters"])
        if first == second:
            raise _GoneError
        return {"clusters": [first, second]}

    def _split(self, edit: Edit) -> Edit:
        cluster = self._number(edit["cluster"])
        inside = np.flatnonzero(self._groups.labels == cluster)
        return {"cluster": cluster} | self._group(edit, inside)

    def _move(self, edit: Edit) -> Edit:
        return {"rows": self._some(edit["rows"]), "to": self._number(edit["to"])}

    def _found(self, edit: Edit) -> Edit:
        """Return the new groups that the new run does not have as clusters."""
        found = self._group(edit)
        labels, parts, made = self._groups.labels, found["parts"], self._made
        found["parts"], self._made = [], []
        for part, number in zip(parts, made, strict=True):
            (cluster, n_shared), *_ = Counter(labels[part["rows"]].tolist()).most_common(1)
            if 2 * n_shared > max(len(part["rows"]), int(np.sum(labels == cluster))):
                self._counterparts[self._next + number] = cluster
            else:
                found["parts"].append(part)
                self._made.append(number)
        return found

    def _group(self, edit: Edit, inside: NDArray[np.intp] | None = None) -> Edit:
        """Return the parts of which images are left."""
        free = np.arange(len(self._groups.labels)) if inside is None else inside
        parts = []
        for number, part in enumerate(edit["parts"]):
            rows = np.intersect1d(self._rows(part["rows"]), free)
            free = np.setdiff1d(free, rows)
            if len(rows):
                parts.append({"name": part["name"], "rows": rows})
                self._made.append(number)
        if not parts:
            raise _GoneError
        return {"parts": parts}
