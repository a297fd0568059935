"""Names that stay: the clusters of a new run matched with those of the run before it.

Images are the same if their contents are. Two clusters match if they share more than half of the
images of both, so no cluster has two matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, compress
from itertools import count as count_from
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut import __version__
from nouncut.compute.checks import warn_user
from nouncut.errors import InputError
from nouncut.method.count import ClusterCount
from nouncut.runs.carried_edits import CarriedEdits, NewImages, carry_edits
from nouncut.runs.changes import GroupsOf, compare_groups, count_files
from nouncut.runs.collection import Collection
from nouncut.runs.edit_log import EARLIER_EDITS, EDITS, LoggedEdit, rename_entry
from nouncut.runs.edits import EditedGroups
from nouncut.runs.file_changes import match_files
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.run import Run, open_run, run_identities
from nouncut.runs.settings import Settings
from nouncut.runs.tables import path_texts
from nouncut.words.cluster_names import ClusterName
from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import broader_synsets, synsets_of

# A name's evidence is a mean of probabilities over the images of a cluster, so it changes by at
# most a tenth if a tenth of the images changes.
_SAME_IMAGES = 0.9
# Images that stand for a cluster whose name found no place, to recognise it if it comes back.
_IMAGES_PER_NAME = 100
_SHOWN_NAMES = 5
# Such names count clusters; they say nothing about their images.
_NUMBER = re.compile(r"(cluster|group) \d+( \d+)?")


class Match(NamedTuple):
    """An earlier cluster and the Jaccard index of its images with those of a new one."""

    earlier: int
    overlap: float


@dataclass(frozen=True)
class EarlierGroups:
    """How many clusters an earlier run found, if it was not told, and the images' labels there."""

    count: ClusterCount | None = None
    labels: NDArray[np.intp] | None = None  # -1 for new images


@dataclass(frozen=True)
class KeptNames:
    """Names of new clusters, and edits of an earlier run that still make sense.

    `edits` is None if there were none; `unmatched` are given names without a cluster.
    """

    computed: list[ClusterName]
    edits: list[LoggedEdit] | None = None
    unmatched: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] | None = None

    def manifest(self) -> dict[str, Any]:
        """Return the fields of the manifest about the run before."""
        about = {"earlier_run": self.about, "changes": self.changes} if self.about else {}
        return about | ({"unmatched_names": self.unmatched} if self.unmatched else {})


@dataclass(frozen=True)
class _GivenName:
    """A name that a person gave, the images of its cluster, and the new cluster that matches."""

    name: str
    images: Sequence[str]
    cluster: int | None = None


def keep_names(
    directory: Path,
    collection: Collection,
    labels: NDArray[np.intp],
    names: list[ClusterName],
    job: Job,
) -> KeptNames:
    """Return the names of new clusters after those of the run in the directory, if there is one."""
    try:
        run = open_run(directory)
        images = NewImages(_identities(collection.images), path_texts(collection.images.paths))
        return carry_names(run, images, labels, names, _names_alike(run, collection, job.settings))
    except InputError:
        if (directory / EDITS).exists():
            warn_user(
                "The run before or its edits are damaged, so its edits were not carried over. They "
                f"are kept in {EARLIER_EDITS}."
            )
        return KeptNames(names)


def earlier_groups(directory: Path, collection: Collection, job: Job) -> EarlierGroups:
    """Return the clusters that the run in the directory has found.

    Empty if there is no such run, or if it had other images, settings or another model. A few
    images more or less hardly change which kinds there are, but can tip the scale between two cuts
    that are equally good.
    """
    try:
        run = open_run(directory)
        label_of = dict(zip(run_identities(run), run.computed.labels.tolist(), strict=True))
    except InputError:
        return EarlierGroups()
    ids = _identities(collection.images)
    is_same = run.manifest.get("settings") == job.settings.to_json()
    if not (is_same and _names_alike(run, collection, job.settings)):
        return EarlierGroups()
    if len(label_of.keys() & set(ids)) < _SAME_IMAGES * len(label_of.keys() | set(ids)):
        return EarlierGroups()
    labels = np.array([label_of.get(image, -1) for image in ids], dtype=np.intp)
    return EarlierGroups(_read_count(run.manifest.get("cluster_count")), labels)


def kept_numbers(
    directory: Path, collection: Collection, labels: NDArray[np.intp], n_clusters: int
) -> NDArray[np.intp]:
    """Return the numbers of new clusters: those of the earlier clusters that they match.

    The others get the numbers that are free, from 0 to `n_clusters` - 1.
    """
    try:
        run = open_run(directory)
        known = run_identities(run), run.computed.labels
    except InputError:
        return np.arange(n_clusters)
    matches = match_clusters(*known, _identities(collection.images), labels)
    kept = {new: match.earlier for new, match in matches.items() if match.earlier < n_clusters}
    free = iter(sorted(set(range(n_clusters)) - set(kept.values())))
    return np.array([kept[c] if c in kept else next(free) for c in range(n_clusters)])


def _read_count(found: Any) -> ClusterCount | None:
    try:
        candidates = tuple((int(number), float(score)) for number, score in found["candidates"])
        return ClusterCount(int(found["n_clusters"]), candidates, float(found["confidence"]))
    except (KeyError, TypeError, ValueError):
        return None


def carry_names(
    run: Run,
    images: NewImages,
    labels: NDArray[np.intp],
    names: list[ClusterName],
    same_rules: bool,
) -> KeptNames:
    """Return the names of new clusters, and their edits, after those of an earlier run.

    Computed names are carried over only if they were found by the `same_rules`.
    """
    rows, old_ids, ids = run.all_clusters.to_pylist(), run_identities(run), images.ids
    matches = match_clusters(old_ids, run.computed.labels, ids, labels)
    computed = keep_computed(names, rows, matches) if same_rules else names
    groups = EditedGroups.computed(labels, [name.name for name in computed])
    carried = carry_edits(run, old_ids, images, groups)
    edited = match_clusters(old_ids, run.labels, ids, groups.labels)
    known = _unmatched_before(run)
    asked = [*_given_names(run, old_ids, edited), *known]
    given, unmatched = place_given(asked, edited.keys(), ids, groups.labels)
    _warn_of_unmatched([one for one in unmatched if one not in known])
    carried.warn()
    about = {
        "id": run.manifest.get("id"),
        "n_matched": len(matches),
        "n_names_kept": sum(
            computed[n].name == rows[m.earlier]["name"] for n, m in matches.items()
        ),
        "n_given_kept": len(given),
        "n_edits_kept": len(carried.kept),
        "edits_dropped": carried.dropped,
    }
    new = {number: name for number, name in given.items() if groups.names[number] != name}
    n_named = int(np.isin(groups.labels, list(new)).sum())
    edits = [*carried.kept, *([rename_entry(new, n_named)] if new else [])]
    return KeptNames(
        computed,
        edits or None,
        [{"name": one.name, "images": _sample(one.images)} for one in unmatched],
        about,
        _changes(run, images, groups, given, {n: m.earlier for n, m in edited.items()}, carried),
    )


def _changes(
    run: Run,
    images: NewImages,
    groups: EditedGroups,
    given: Mapping[int, str],
    counterparts: Mapping[int, int],
    carried: CarriedEdits,
) -> dict[str, Any]:
    """Return what changed since the run before, for the manifest."""
    paths = run.images["path"].slice(0, len(run.labels)).to_pylist()
    files = match_files(run_identities(run), paths, images.ids, images.paths)
    groups = groups.without_empty()
    before = GroupsOf(run.labels, run.groups.names)
    after = GroupsOf(groups.labels, groups.names | dict(given))
    changes = replace(
        count_files(files),
        **compare_groups(before, after, (files.kept, files.files), counterparts),
        reclustered=True,
        n_edits_kept=len(carried.kept),
        edits_dropped=carried.dropped,
    )
    return changes.to_json()


def match_clusters(
    earlier_ids: Sequence[str],
    earlier_labels: NDArray[Any],
    ids: Sequence[str],
    labels: NDArray[Any],
) -> dict[int, Match]:
    """Match new clusters with earlier ones; ids identify images, and copies count once."""
    if -1 in earlier_labels or -1 in labels:  # images that are set aside
        earlier_ids = list(compress(earlier_ids, earlier_labels >= 0))
        ids = list(compress(ids, labels >= 0))
        earlier_labels, labels = earlier_labels[earlier_labels >= 0], labels[labels >= 0]
    codes = pa.array([*earlier_ids, *ids], pa.string()).dictionary_encode().indices.to_numpy()
    old, old_rows = np.unique(codes[: len(earlier_ids)], return_index=True)
    new, new_rows = np.unique(codes[len(earlier_ids) :], return_index=True)
    old_clusters, new_clusters = earlier_labels[old_rows], labels[new_rows]
    _, in_old, in_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    pairs = np.stack([old_clusters[in_old], new_clusters[in_new]], axis=1)
    pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    old_sizes, new_sizes = np.bincount(old_clusters), np.bincount(new_clusters)
    return {
        int(b): Match(int(a), float(n / (old_sizes[a] + new_sizes[b] - n)))
        for (a, b), n in zip(pairs, counts, strict=True)
        if 2 * n > max(old_sizes[a], new_sizes[b])
    }


def keep_computed(
    names: Sequence[ClusterName], earlier: Sequence[Mapping[str, Any]], matches: Mapping[int, Match]
) -> list[ClusterName]:
    """Give matched clusters their earlier names where these still fit; names stay distinct."""
    kept = {
        cluster: _as_before(names[cluster], earlier[match.earlier])
        for cluster, match in matches.items()
        if _still_fits(names[cluster], earlier[match.earlier], match.overlap)
    }
    while True:
        new = {fold_word(name.name) for c, name in enumerate(names) if c not in kept}
        # Another cluster has that name now, and this one has changed.
        lost = [
            cluster
            for cluster, name in kept.items()
            if fold_word(name.name) in new and matches[cluster].overlap < _SAME_IMAGES
        ]
        if not lost:
            return _distinct(names, kept)
        for cluster in lost:
            del kept[cluster]


def _distinct(names: Sequence[ClusterName], kept: Mapping[int, ClusterName]) -> list[ClusterName]:
    """Return all names; a new one that is a kept one as well gives way to its next word."""
    taken = {fold_word(name.name) for name in kept.values()}
    new = {c: name for c, name in enumerate(names) if c not in kept}
    used = taken | {fold_word(name.name) for name in new.values()}
    for cluster, name in new.items():
        if fold_word(name.name) in taken:
            numbered = (f"{name.name} {number}" for number in count_from(2))
            word = next(w for w in chain(name.more_words, numbered) if fold_word(w) not in used)
            used.add(fold_word(word))
            more = tuple(other for other in name.more_words if other != word)
            new[cluster] = replace(name, name=word, more_words=more, gloss="")
    return [(kept.get(cluster) or new[cluster]) for cluster in range(len(names))]


def place_given(
    given: Sequence[_GivenName],
    matched: Container[int],
    ids: Sequence[str],
    labels: NDArray[Any],
) -> tuple[dict[int, str], list[_GivenName]]:
    """Return given names by new cluster, and those that find none.

    A name without a match goes to the cluster with most of its images, unless that one matches
    another earlier cluster or has a given name; the shared images must be more than half of the
    images of the name, or of the cluster.
    """
    placed = {one.cluster: one.name for one in given if one.cluster is not None}
    rest = [one for one in given if one.cluster is None]
    if not rest:
        return placed, []
    cluster_of = {
        image: label for image, label in zip(ids, labels.tolist(), strict=True) if label >= 0
    }
    sizes = Counter(cluster_of.values())
    found = [_best_cluster(one, cluster_of) for one in rest]
    unmatched = []
    for i in sorted(range(len(rest)), key=lambda i: -found[i][1]):
        cluster, n_shared = found[i]
        enough = 2 * n_shared > min(len(rest[i].images), sizes[cluster])
        if n_shared and enough and cluster not in matched and cluster not in placed:
            placed[cluster] = rest[i].name
        else:
            unmatched.append(rest[i])
    return placed, unmatched


def _best_cluster(one: _GivenName, cluster_of: Mapping[str, int]) -> tuple[int, int]:
    counts = Counter(cluster_of[image] for image in one.images if image in cluster_of)
    return counts.most_common(1)[0] if counts else (-1, 0)


def _given_names(run: Run, ids: Sequence[str], matches: Mapping[int, Match]) -> list[_GivenName]:
    new = {match.earlier: cluster for cluster, match in matches.items()}
    names = {number: run.groups.names[number] for number in sorted(run.groups.given)}
    members: dict[int, dict[str, None]] = {number: {} for number in names}
    for image, label in zip(ids, run.labels.tolist(), strict=True):
        if label in members:
            members[label][image] = None
    return [
        _GivenName(name, list(members[number]), new.get(number)) for number, name in names.items()
    ]


def _unmatched_before(run: Run) -> list[_GivenName]:
    """Return the names that found no cluster in the earlier run, and may find one now."""
    listed = run.manifest.get("unmatched_names") or []
    return [_GivenName(str(one["name"]), [str(image) for image in one["images"]]) for one in listed]


def _warn_of_unmatched(unmatched: Sequence[_GivenName]) -> None:
    if not unmatched:
        return
    names = ", ".join(f'"{one.name}"' for one in unmatched[:_SHOWN_NAMES])
    more = f" and {len(unmatched) - _SHOWN_NAMES:,} more" * (len(unmatched) > _SHOWN_NAMES)
    warn_user(
        f"No group of this run suits {names}{more}, which you gave as names. They are kept in "
        "manifest.json, and return if their groups do."
    )


def _still_fits(new: ClusterName, earlier: Mapping[str, Any], overlap: float) -> bool:
    name = earlier["name"]
    if not name or _NUMBER.fullmatch(name):
        return False
    # A guess stays only where there is still nothing better.
    if earlier.get("guess"):
        return new.guess
    words = {fold_word(word) for word in (new.name, *new.more_words)}
    if overlap >= _SAME_IMAGES or fold_word(name) in words or _are_related(name, new.name):
        return True
    # Of two names for a cluster that has changed, the surer one.
    return bool(earlier.get("name_confidence", 1.0) >= new.confidence)


def _are_related(word: str, other: str) -> bool:
    """Return whether a sense of one word is the same as, or above, a sense of the other."""
    senses, others = (synsets_of(name.split(" (like ")[0]) for name in (word, other))
    above, others_above = broader_synsets(senses), broader_synsets(others)
    return any(s.id in others_above for s in senses) or any(s.id in above for s in others)


def _as_before(new: ClusterName, earlier: Mapping[str, Any]) -> ClusterName:
    """Return a name with everything that the table of clusters says about the earlier one."""
    known = {
        part.name: earlier.get(part.name, earlier.get(f"name_{part.name}")) for part in fields(new)
    }
    known["more_words"] = tuple(known["more_words"] or ())
    return replace(new, **{key: value for key, value in known.items() if value is not None})


def _names_alike(run: Run, collection: Collection, settings: Settings) -> bool:
    """Return whether names were found among the same words, with the same model and rules."""
    manifest = run.manifest
    asked, now = manifest.get("settings") or {}, settings.to_json()
    same_words = all(asked.get(key) == now[key] for key in ("vocabulary", "lexicons"))
    fingerprint = collection.model and collection.model.encoder.fingerprint
    same_model = (manifest.get("model") or {}).get("fingerprint") == fingerprint
    return same_words and same_model and manifest.get("nouncut") == __version__


def _identities(images: ImageSet) -> list[str]:
    return path_texts(images.paths) if images.hashes is None else list(images.hashes)


def _sample(images: Sequence[str]) -> list[str]:
    n = len(images)
    chosen = np.linspace(0, n - 1, min(n, _IMAGES_PER_NAME)).astype(int)
    return [images[i] for i in chosen]
