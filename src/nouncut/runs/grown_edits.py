"""Edits of a run that has new images, and from which images may be gone.

All groups keep their numbers. A new image follows the images of its cluster: where they were
divided, it joins the part whose mean is nearest, and where all of them went, it goes too. Copies
follow their originals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.runs.edit_log import LoggedEdit
from nouncut.runs.edits import SET_ASIDE, Edit, EditedGroups, undo_stacks
from nouncut.runs.run import Run

_Rows = NDArray[np.intp]


class Arrivals(NamedTuple):
    """New images: clusters (-1 for none), features, and the rows of their originals or -1."""

    labels: _Rows
    features: NDArray[Any]
    originals: _Rows


@dataclass
class GrownEdits:
    """The groups of the grown run, its edits, and descriptions of edits without images."""

    groups: EditedGroups
    kept: list[LoggedEdit] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def grow_edits(run: Run, kept: _Rows, arrivals: Arrivals) -> GrownEdits:
    """Apply the edits of a run to its `kept` rows, which come first, and to new images."""
    names = run.all_clusters["name"].to_pylist()
    computed = run.computed.labels
    old = EditedGroups.computed(computed, names)
    new = EditedGroups.computed(np.concatenate([computed[kept], arrivals.labels]), names)
    translate = _Growth(run, kept, arrivals, new)
    grown = GrownEdits(new)
    for number in undo_stacks([one.edit for one in run.edits])[0]:
        logged = run.edits[number]
        before = old.copy()
        old.apply(logged.edit)
        edit = translate(logged.edit, before, before.present - old.present)
        if edit is None:
            grown.dropped.append(logged.text)
            continue
        new.apply(edit)
        grown.kept.append(replace(logged, edit=edit))
    return grown


class _Growth:
    """Turns edits of a run into edits of the grown run."""

    def __init__(self, run: Run, kept: _Rows, arrivals: Arrivals, groups: EditedGroups) -> None:
        self._run, self._groups, self._arrivals = run, groups, arrivals
        self._n_kept = len(kept)
        self._places = np.full(len(run.computed.labels), -1)
        self._places[kept] = np.arange(len(kept))
        self._kinds: Mapping[str, Callable[[Edit, EditedGroups, set[int]], Edit | None]] = {
            "rename": lambda edit, *_: edit,
            "merge": lambda edit, *_: edit,
            "apart": lambda edit, *_: edit,
            "split": self._split,
            "move": self._take,
            "set aside": self._take,
            "group": self._group,
            "found": self._found,
        }

    def __call__(self, edit: Edit, before: EditedGroups, ended: set[int]) -> Edit | None:
        return self._kinds[edit["kind"]](edit, before, ended)

    def _take(self, edit: Edit, before: EditedGroups, ended: set[int]) -> Edit | None:
        rows = self._grown(edit["rows"], self._inside(ended))
        return edit | {"rows": rows} if len(rows) else None

    def _group(self, edit: Edit, before: EditedGroups, ended: set[int]) -> Edit:
        parts = [part["rows"] for part in edit["parts"]]
        return self._with_new(edit, [self._nearest(self._inside(ended), parts)])

    def _split(self, edit: Edit, before: EditedGroups, ended: set[int]) -> Edit:
        return self._with_new(edit, [self._leaving(edit, before, edit["cluster"])])

    def _found(self, edit: Edit, before: EditedGroups, ended: set[int]) -> Edit:
        groups = np.unique(self._labels[self._labels != SET_ASIDE]).tolist()
        return self._with_new(edit, [self._leaving(edit, before, group) for group in groups])

    @property
    def _labels(self) -> _Rows:
        return self._groups.labels[self._n_kept :]

    def _inside(self, groups: set[int]) -> _Rows:
        """Return the new images in some groups."""
        return np.flatnonzero(np.isin(self._labels, list(groups)))

    def _leaving(self, edit: Edit, before: EditedGroups, group: int) -> list[_Rows]:
        """Return the new images of a group that each part takes from it."""
        parts = [part["rows"] for part in edit["parts"]]
        rest = np.setdiff1d(np.flatnonzero(before.labels == group), np.concatenate(parts))
        new = self._inside({group}) if len(rest) else np.empty(0, np.intp)
        return self._nearest(new, [*parts, rest])[:-1]

    def _nearest(self, new: _Rows, parts: Sequence[_Rows]) -> list[_Rows]:
        """Return the new images whose nearest mean is that of each part."""
        member = np.full(len(self._places) + 1, -1)
        means = np.zeros((len(parts), self._arrivals.features.shape[1]), np.float32)
        is_known = np.zeros(len(parts), bool)
        for number, rows in enumerate(parts):
            member[rows] = number
            known = known_features(self._run, rows)
            is_known[number] = len(known) > 0
            if len(known):
                means[number] = unit_rows(known).mean(axis=0)
        cosines = unit_rows(self._arrivals.features[new]) @ means.T
        cosines[:, ~is_known] = -np.inf
        # The last entry, -1, is that of images that are no copies.
        originals = member[self._arrivals.originals[new]]
        chosen = np.where(originals >= 0, originals, cosines.argmax(axis=1))
        return [new[chosen == number] for number in range(len(parts))]

    def _with_new(self, edit: Edit, joining: Sequence[Sequence[_Rows]]) -> Edit:
        """Return an edit whose parts have the images that are still there, and new ones."""
        parts = [
            part | {"rows": self._grown(part["rows"], *(new[number] for new in joining))}
            for number, part in enumerate(edit["parts"])
        ]
        return edit | {"parts": parts}

    def _grown(self, rows: _Rows, *new: _Rows) -> _Rows:
        there = self._places[rows]
        added = np.sort(np.concatenate([np.empty(0, np.intp), *new]))
        return np.concatenate([there[there >= 0], self._n_kept + added])


def known_features(run: Run, rows: _Rows) -> NDArray[Any]:
    """Return the features of images; of a large run, of those in its sample."""
    if run.sample is None:
        return np.asarray(run.array("features")[rows])
    places = np.searchsorted(run.sample.rows, rows)
    is_there = run.sample.rows[np.minimum(places, len(run.sample.rows) - 1)] == rows
    return np.asarray(run.sample.array("features")[places[is_there]])
