"""What changed from a run to the next one in the same directory, as data and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.runs.file_changes import FileChanges

N_SHOWN = 5


@dataclass(frozen=True)
class GroupChange:
    """A group that changed, and how many images it had and has; 0 if it was not there."""

    cluster: int
    name: str
    before: int
    after: int


@dataclass(frozen=True)
class Proposal:
    """Images that fit no group but belong together; `made` if they are a group now."""

    name: str
    n_images: int
    paths: list[str]
    made: bool = False


@dataclass(frozen=True)
class Changes:
    """What changed since the run before.

    Parameters
    ----------
    n_new, n_gone, n_changed, n_renamed : int
        Number of files that were added, removed, changed (these count among the new and the gone
        ones) and renamed or moved.
    n_moved : int
        Number of images that are in another group than before.
    reclustered : bool
        Whether all images were clustered again; otherwise new ones were placed in the groups.
    groups : list of GroupChange
        Groups that have more or fewer images, are new, or have vanished.
    n_names_kept : int
        Number of groups that have the name that they had.
    renamed : list of list of str
        The names before and after of the groups that have another one.
    n_edits_kept : int
        Number of edits that still count.
    edits_dropped : list of str
        Edits that do not suit the groups any more.
    n_unfamiliar : int
        Number of images, among all that were placed, that fit no group well.
    unfamiliar : list of str
        The first few of them.
    proposals : list of Proposal
        Groups that they could make.
    why_recluster : str
        Why clustering all images again is worthwhile; empty if it is not.
    """

    n_new: int = 0
    n_gone: int = 0
    n_changed: int = 0
    n_renamed: int = 0
    n_moved: int = 0
    reclustered: bool = False
    groups: list[GroupChange] = field(default_factory=list)
    n_names_kept: int = 0
    renamed: list[list[str]] = field(default_factory=list)
    n_edits_kept: int = 0
    edits_dropped: list[str] = field(default_factory=list)
    n_unfamiliar: int = 0
    unfamiliar: list[str] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    why_recluster: str = ""

    def __bool__(self) -> bool:
        return bool(
            self.n_new
            or self.n_gone
            or self.n_renamed
            or self.n_moved
            or self.groups
            or self.renamed
        )

    def __str__(self) -> str:
        return "\n".join(describe_changes(self))

    def to_json(self) -> dict[str, Any]:
        """Return the changes as JSON knows them.

        Returns
        -------
        dict
            The fields by name.
        """
        return asdict(self)


def read_changes(manifest: Mapping[str, Any]) -> Changes | None:
    """Return the changes that a manifest records, if any."""
    found = manifest.get("changes")
    if not found:
        return None
    known = {one.name: found[one.name] for one in fields(Changes) if one.name in found}
    known["groups"] = [GroupChange(**one) for one in known["groups"]]
    known["proposals"] = [Proposal(**one) for one in known["proposals"]]
    return Changes(**known)


def count_files(files: FileChanges) -> Changes:
    """Return changes that say what happened to the files."""
    return Changes(len(files.new), len(files.gone), len(files.changed), files.n_renamed)


@dataclass(frozen=True)
class GroupsOf:
    """The groups of all images of a run, -1 for none, and the groups' names."""

    labels: NDArray[np.intp]
    names: Mapping[int, str]


def compare_groups(
    before: GroupsOf,
    after: GroupsOf,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    counterparts: Mapping[int, int],
) -> dict[str, Any]:
    """Return the fields of `Changes` about groups.

    `pairs` are rows before and after of the same images, `counterparts` the groups before of the
    groups after.
    """
    old_sizes, new_sizes = Counter(before.labels.tolist()), Counter(after.labels.tolist())
    found = []
    for number, name in after.names.items():
        earlier = old_sizes[counterparts[number]] if number in counterparts else 0
        if earlier != new_sizes[number]:
            found.append(GroupChange(number, name, earlier, new_sizes[number]))
    left = before.names.keys() - set(counterparts.values())
    found += [GroupChange(n, before.names[n], old_sizes[n], 0) for n in sorted(left)]
    found.sort(key=lambda one: one.before - one.after)
    earlier_labels, labels = before.labels[pairs[0]], after.labels[pairs[1]]
    names = [
        (before.names[old], after.names[new])
        for new, old in sorted(counterparts.items())
        if old in before.names and new in after.names
    ]
    expected = np.array([counterparts.get(number, -2) for number in labels.tolist()], dtype=np.intp)
    return {
        "groups": found,
        "n_moved": int(np.count_nonzero(np.where(labels < 0, -1, expected) != earlier_labels)),
        "n_names_kept": sum(was == now for was, now in names),
        "renamed": [[was, now] for was, now in names if was != now],
    }


def describe_changes(changes: Changes, *, advice: bool = True) -> list[str]:
    """Say in sentences what changed, and what could be done next."""
    return [*_sentences(changes), *(_advice(changes) if advice else ())]


def _sentences(changes: Changes) -> Iterator[str]:
    if not changes:
        yield "Nothing changed."
        return
    if changes.n_new or changes.n_gone or changes.n_renamed:
        yield _describe_files(changes)
    grown = [one for one in changes.groups if one.before and one.after > one.before]
    shrunk = [one for one in changes.groups if one.after and one.after < one.before]
    if grown:
        more = (f"{_name(one)} +{one.after - one.before:,}" for one in grown)
        yield f"More images: {_listed(more)}."
    if shrunk:
        fewer = (f"{_name(one)} \N{MINUS SIGN}{one.before - one.after:,}" for one in shrunk[::-1])
        yield f"Fewer images: {_listed(fewer)}."
    if new := [one for one in changes.groups if not one.before]:
        yield f"New groups: {_listed(f'{_name(one)} ({one.after:,})' for one in new)}."
    if gone := [one for one in changes.groups if not one.after]:
        yield f"Groups that are gone: {_listed(f'{_name(one)} ({one.before:,})' for one in gone)}."
    if changes.renamed:
        names = (f"{_quoted(was)} is now {_quoted(now)}" for was, now in changes.renamed)
        yield f"Other names: {_listed(names)}."
    if changes.n_moved:
        yield f"{_counted(changes.n_moved, 'is', 'are')} in another group than before."
    if changes.edits_dropped:
        yield f"Edits that no longer suit the groups: {_listed(changes.edits_dropped, '; ')}."
    yield from _describe_unfamiliar(changes)


def _describe_files(changes: Changes) -> str:
    counts = (
        (changes.n_new - changes.n_changed, "is new", "are new"),
        (changes.n_gone - changes.n_changed, "is gone", "are gone"),
        (changes.n_changed, "has changed", "have changed"),
        (changes.n_renamed, "was renamed", "were renamed"),
    )
    parts = [_counted(*count) for count in counts if count[0]]
    return f"{', '.join(parts)}."


def _describe_unfamiliar(changes: Changes) -> Iterator[str]:
    if n := changes.n_unfamiliar:
        paths = _listed([PurePath(path).name for path in changes.unfamiliar], n_all=n)
        yield f"{_counted(n, 'that was added fits', 'that were added fit')} no group well: {paths}."
    for one in changes.proposals:
        if not one.made:
            yield f"{one.n_images:,} images look like a group of their own, {_name(one)}."


def _advice(changes: Changes) -> Iterator[str]:
    if any(not one.made for one in changes.proposals):
        yield "Pass `new_groups=True` to make new groups."
    if changes.why_recluster:
        yield f"Clustering again is worthwhile (`recluster=True`): {changes.why_recluster}."


def _name(one: GroupChange | Proposal) -> str:
    return _quoted(one.name)


def _quoted(name: str) -> str:
    return f'"{printable_path(name)}"'


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} image{'s' * (number != 1)} {one if number == 1 else many}"


def _listed(texts: Iterator[str] | Sequence[str], between: str = ", ", n_all: int = 0) -> str:
    every = [printable_path(text) for text in texts]
    more = max(n_all, len(every)) - N_SHOWN
    shown = between.join(every[:N_SHOWN])
    return f"{shown}{between}and {more:,} more" if more > 0 else shown
