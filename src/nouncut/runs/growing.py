"""The contents of a run after new images joined it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.threads import count_threads
from nouncut.images.find import ImageScan
from nouncut.method.membership import Membership
from nouncut.runs.changes import (
    N_SHOWN,
    Changes,
    GroupsOf,
    Proposal,
    compare_groups,
)
from nouncut.runs.collection import Collection, familiar_rows
from nouncut.runs.contents import file_sizes, membership_columns
from nouncut.runs.edit_log import LoggedEdit, now
from nouncut.runs.edited_tables import GroupFacts, described_clusters
from nouncut.runs.edits import EditedGroups, replay
from nouncut.runs.encode import EncodedImages
from nouncut.runs.grown_edits import Arrivals, GrownEdits, grow_edits
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.naming import name_groups
from nouncut.runs.placing import Grown, first_of_each
from nouncut.runs.predict import known_familiar_rows, needed_field, read_queries
from nouncut.runs.run import Run
from nouncut.runs.tables import (
    ASSIGNMENTS_SCHEMA,
    CLUSTERS_SCHEMA,
    images_table,
    path_texts,
    table_of,
)
from nouncut.runs.tree import find_levels
from nouncut.runs.unfamiliar import (
    find_unfamiliar,
    loosest_group,
    propose_groups,
    take_along,
    why_recluster,
)
from nouncut.runs.vocabulary import start_vocabulary
from nouncut.runs.writer import RunContents
from nouncut.words.cluster_names import ClusterName
from nouncut.words.spelling import fold_word

if TYPE_CHECKING:
    from nouncut.runs.update import Found

_Rows = NDArray[np.intp]
# Fields of the manifest that the writer sets, or that no longer hold.
_OWN_FIELDS = ("started", "finished", "content", "estimate", "earlier_run", "checksum")
_NUMBERED = re.compile(r" \d+$")
_NO_IMAGES: dict[str, Any] = {"size": 0, "cohesion": None, "exemplars": [], "borderline": []}


def read_new(run: Run, scan: ImageScan, images: ImageSet, job: Job) -> Collection | None:
    """Encode new images with the models of a run; None if there are none."""
    if not images.paths:
        return None
    with job.timed("encoding images"):
        return read_queries(run, scan, job, images)


@dataclass(frozen=True)
class _Update:
    """A grown run in the making: its images, clusters, edits, and which images fit nowhere."""

    grown: Grown
    paths: list[str | Path]
    hashes: list[str]
    membership: Membership
    edits: GrownEdits
    looks: NDArray[np.float32]
    outliers: NDArray[np.bool_]
    job: Job

    @property
    def run(self) -> Run:
        return self.grown.run

    @property
    def labels(self) -> _Rows:
        """The computed clusters of all images."""
        return np.concatenate(
            [self.run.computed.labels[self.grown.kept], self.membership.label]
        ).astype(np.intp)


def grown_contents(
    run: Run, found: Found, new: Collection | None, job: Job, changes: Changes, new_groups: bool
) -> tuple[Changes, RunContents]:
    """Return the contents of a run with the files that are there now, and what changed."""
    with job.stage("placing images"):
        update = _place(run, found, new, job)
        proposed = _propose(update) if new is not None else []
    names: list[str] = []
    if new is not None and proposed:
        proposed, names = _name(update, new, proposed)
    groups, edits = update.edits.groups.without_empty(), update.edits.kept
    if new_groups and proposed:
        edits = [*edits, _found_edit(proposed, names)]
        groups = replay(update.edits.groups, [edits[-1].edit])
    changes = replace(
        changes,
        **_group_changes(run, found, groups),
        **_unfamiliar_changes(update, groups, proposed, names, new_groups),
        n_edits_kept=len(edits),
        edits_dropped=update.edits.dropped,
    )
    with job.stage("writing the run"):
        return changes, _contents(update, found, edits if run.edits or edits else None)


def _place(run: Run, found: Found, new: Collection | None, job: Job) -> _Update:
    files, images = found.changes, found.images
    numbers = np.concatenate([files.files, files.new]).tolist()
    hashes = [(images.hashes or ())[number] for number in numbers]
    n_jobs = job.n_jobs
    grown = Grown(run, files.kept, new, first_of_each(hashes), n_jobs)
    membership = grown.membership(needed_field(run, "membership_temperature"))
    # The rows in the run of those that are copies.
    originals = np.append(files.kept, np.full(len(files.new), -1))[grown.originals]
    new_rows, features = grown.arrivals, grown.array("features")
    arrivals = Arrivals(membership.label, features[new_rows], originals[new_rows])
    looks = known_familiar_rows(run)[files.kept]
    if new is not None:
        looks = np.concatenate([looks, familiar_rows(new)])[grown.originals]
    edits = grow_edits(run, files.kept, arrivals)
    outliers = _outliers(grown, looks, job)
    paths = [images.paths[number] for number in numbers]
    return _Update(grown, paths, hashes, membership, edits, looks, outliers, job)


def _outliers(grown: Grown, looks: NDArray[np.float32], job: Job) -> NDArray[np.bool_]:
    """Tell which images fit no cluster: those of the run that did not, and unfamiliar new ones."""
    run, n_kept = grown.run, len(grown.kept)
    found = np.zeros(len(grown), dtype=bool)
    found[:n_kept] = run.computed.assignments["outlier"].to_numpy()[grown.kept]
    least = needed_field(run, "least_familiarity")
    threads = count_threads(job.n_jobs)
    known = _known(grown)
    found[find_unfamiliar(looks, known, grown.arrivals, least, threads)] = True
    return found


def _known(grown: Grown) -> _Rows:
    """Return the images that new ones are compared with.

    These are the images that were clustered, and those without a place that got one since.
    """
    kept, placed = grown.kept, grown.placed
    known = np.ones(len(kept), dtype=bool)
    known[placed[placed < len(kept)]] = False
    was, is_now = (
        run.assignments["outlier"].to_numpy()[kept] for run in (grown.run.computed, grown.run)
    )
    return np.flatnonzero(known | (was & ~is_now))


def _propose(update: _Update) -> list[_Rows]:
    """Return the new groups that images without a place could make."""
    groups, grown = update.edits.groups, update.grown
    free = np.zeros(len(grown), dtype=bool)
    free[grown.placed] = True
    free &= (groups.labels >= 0) & ~groups.by_hand & ~np.isin(groups.labels, list(groups.found))
    # Copies would make a group of one image.
    distinct = free & (grown.originals == np.arange(len(grown)))
    known = _known(grown)
    loosest = loosest_group(update.looks[known], groups.labels[known])
    found = propose_groups(update.looks, np.flatnonzero(distinct & update.outliers), loosest)
    if not found:
        return []
    others = np.setdiff1d(np.flatnonzero(distinct), np.concatenate(found))
    found = take_along(update.looks, found, others, known, groups.labels)
    return [np.flatnonzero(free & np.isin(grown.originals, rows)) for rows in found]


def _name(
    update: _Update, new: Collection, proposed: Sequence[_Rows]
) -> tuple[list[_Rows], list[str]]:
    """Name new groups beside the groups that there are; those of one name are one group."""
    from nouncut.runs.update import run_settings

    run, groups = update.run, update.edits.groups
    job = replace(update.job, settings=run_settings(run))
    assert isinstance(new.images, EncodedImages)
    paths = tuple(map(Path, update.paths))
    images = replace(new.images, paths=paths, hashes=tuple(update.hashes))
    semantic = update.grown.array("semantic") if run.has_array("semantic") else None
    features = update.grown.array("features")
    every = replace(new, images=images, visual=features, semantic=semantic, rows=images.rows)
    numbers, labels = np.unique(groups.labels, return_inverse=True)
    for number, rows in enumerate(proposed, start=len(numbers)):
        labels[rows] = number
    words = start_vocabulary(new.model, job)
    vocabulary = words.finish(job) if words else None
    with job.timed("naming groups"):
        found = name_groups(labels, len(numbers) + len(proposed), every, vocabulary, job)
    return join_by_name(proposed, found[len(numbers) :], list(groups.names.values()))


def join_by_name(
    proposed: Sequence[_Rows], names: Sequence[ClusterName], taken: Sequence[str]
) -> tuple[list[_Rows], list[str]]:
    """Join groups whose names differ by a number only; return them with names of their own."""
    joined: dict[str, _Rows] = {}
    known = set(map(fold_word, taken))
    for rows, name in zip(proposed, names, strict=True):
        word = _NUMBERED.sub("", name.name)
        # A group that is only numbered has no name.
        if name.guess or not name.confidence or fold_word(word) in known:
            numbered = (f"{word} {number}" for number in count_from(2))
            own = chain([name.name], name.more_words, numbered)
            used = known | set(map(fold_word, joined))
            word = next(one for one in own if fold_word(one) not in used)
        joined[word] = np.union1d(joined.get(word, rows), rows)
    return list(joined.values()), list(joined)


def _found_edit(proposed: Sequence[_Rows], names: Sequence[str]) -> LoggedEdit:
    parts = [{"name": name, "rows": rows} for name, rows in zip(names, proposed, strict=True)]
    shown = ", ".join(f'"{part["name"]}" ({len(part["rows"]):,} images)' for part in parts)
    text = f"make new groups of images that fit no other: {shown}"
    return LoggedEdit({"kind": "found", "parts": parts}, now(), text, sum(map(len, proposed)))


def _group_changes(run: Run, found: Found, groups: EditedGroups) -> dict[str, Any]:
    before = GroupsOf(run.labels, run.groups.names)
    same = {number: number for number in groups.names.keys() & run.groups.names.keys()}
    pairs = found.changes.kept, np.arange(len(found.changes.kept))
    return compare_groups(before, GroupsOf(groups.labels, groups.names), pairs, same)


def _unfamiliar_changes(
    update: _Update,
    groups: EditedGroups,
    proposed: Sequence[_Rows],
    names: Sequence[str],
    made: bool,
) -> dict[str, Any]:
    grown = update.grown
    alone = update.outliers & ~groups.by_hand & (groups.labels >= 0)
    alone &= ~np.isin(groups.labels, list(groups.found))
    rows = grown.placed[alone[grown.placed]]
    # Those of this update first.
    rows = rows[np.argsort(rows < len(grown.kept), kind="stable")]
    n_placed = len(grown.placed)
    return {
        "n_unfamiliar": len(rows),
        "unfamiliar": path_texts([update.paths[row] for row in rows[:N_SHOWN]]),
        "proposals": [
            Proposal(
                name, len(rows), path_texts([update.paths[row] for row in rows[:N_SHOWN]]), made
            )
            for name, rows in zip(names, proposed, strict=True)
        ],
        "why_recluster": why_recluster(len(rows), n_placed, len(grown) - n_placed),
    }


def _contents(update: _Update, found: Found, edits: Sequence[LoggedEdit] | None) -> RunContents:
    run, grown = update.run, update.grown
    manifest = {name: run.manifest[name] for name in run.manifest if name not in _OWN_FIELDS}
    is_copy = grown.originals != np.arange(len(grown))
    manifest |= {
        "n_encoded": grown.new.n_encoded if grown.new else 0,
        "n_outliers": int(update.outliers.sum()),
        "n_copies": int(is_copy.sum()),
        "tree": _tree(update),
    }
    assignments = _assignments(update)
    return RunContents(
        manifest=manifest,
        assignments=assignments,
        clusters=_clusters(update, assignments),
        images=images_table(
            update.paths,
            hashes=update.hashes,
            sizes=file_sizes(update.paths),
            skipped=found.images.skipped,
        ),
        arrays=grown.arrays(update.labels),
        edits=edits,
    )


def _assignments(update: _Update) -> pa.Table:
    names = np.array(update.run.all_clusters["name"].to_pylist(), dtype=object)
    new = update.grown.arrivals
    columns = membership_columns(update.membership, names) | {
        "path": path_texts([update.paths[row] for row in new]),
        "outlier": update.outliers[new],
    }
    known = update.run.computed.assignments.take(update.grown.kept)
    table = pa.concat_tables([known, table_of(columns, ASSIGNMENTS_SCHEMA)]).combine_chunks()
    # Files may have been renamed.
    at = table.schema.get_field_index("path")
    paths = pa.array(path_texts(update.paths), pa.string())
    return table.set_column(at, ASSIGNMENTS_SCHEMA.field("path"), paths)


def _clusters(update: _Update, assignments: pa.Table) -> pa.Table:
    """Return all clusters by number; those without images keep number and name."""
    table = update.run.all_clusters
    groups = EditedGroups.computed(update.labels, table["name"].to_pylist())
    empty = set(groups.names) - groups.present
    hashes = pa.array(update.hashes, pa.string())
    facts = GroupFacts(update.grown.graph, hashes).describe(update.labels, assignments)
    found = described_clusters(table, groups, facts)
    rows = [row | (_NO_IMAGES if row["cluster"] in empty else {}) for row in found]
    rows.sort(key=lambda row: int(row["cluster"]))
    return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)


def _tree(update: _Update) -> dict[str, Any]:
    """Return the levels above the clusters: as before, if there are the same clusters."""
    run = update.run
    numbers, labels, sizes = np.unique(update.labels, return_inverse=True, return_counts=True)
    kept = (run.manifest.get("tree") or {}).get("levels")
    if kept is not None and np.array_equal(numbers, np.unique(run.computed.labels)):
        return {"sizes": sizes.tolist(), "levels": kept}
    semantic = update.grown.array("semantic") if run.has_array("semantic") else None
    counts = (run.manifest.get("settings") or {}).get("levels")
    return find_levels(update.grown.graph, labels, semantic, counts)
