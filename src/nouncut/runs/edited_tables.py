"""The tables of a run with edits applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.method.membership import Membership
from nouncut.runs.edits import SET_ASIDE, EditedGroups
from nouncut.runs.exemplars import borderline_images, cohesion, typical_images
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, table_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nouncut.runs.run import Run

_NEW_ROW = {"more_words": [], "gloss": "", "name_confidence": 0.0, "guess": False}


def edited_assignments(table: pa.Table, groups: EditedGroups) -> pa.Table:
    """Return the assignments of a run after edits.

    Images that are set aside have no cluster. Images that a person moved are certain. Of a second
    choice that was merged with the cluster, both confidences count for the cluster.
    """
    labels, by_hand = groups.labels, groups.by_hand
    second = _successors(table["second_cluster"], groups)
    confidence = _floats(table["confidence"])
    second_confidence = _floats(table["second_confidence"])
    joined = (second == labels) & ~by_hand
    both = np.minimum(1, confidence + np.nan_to_num(second_confidence))
    confidence = np.where(joined, both, confidence)
    confidence = np.where(by_hand, 1.0, confidence)
    confidence[labels == SET_ASIDE] = np.nan
    has_no_second = (second < 0) | (second == labels) | by_hand
    columns = {
        "path": table["path"],
        "cluster": pa.array(labels, mask=labels == SET_ASIDE),
        "name": _names(labels, groups),
        "confidence": _nulls(confidence),
        "second_cluster": pa.array(second, mask=has_no_second),
        "second_name": _names(np.where(has_no_second, SET_ASIDE, second), groups),
        "second_confidence": _nulls(np.where(has_no_second, np.nan, second_confidence)),
        "outlier": table["outlier"].to_numpy() & ~by_hand,
    }
    return table_of(columns, ASSIGNMENTS_SCHEMA)


def clusters_of_edited(run: Run) -> pa.Table:
    """Return the clusters of a run that has edits."""
    table, groups = run.computed.clusters, run.groups
    if np.array_equal(groups.labels, run.computed.labels):
        return renamed_clusters(table, groups)
    graph = run.graph() if run.has_array("graph_data") else None
    hashes = run.images["hash"].slice(0, len(groups.labels))
    known = None if hashes.null_count else hashes.to_pylist()
    return edited_clusters(table, run.assignments, groups, graph, known)


def edited_clusters(
    table: pa.Table,
    assignments: pa.Table,
    groups: EditedGroups,
    graph: csr_array | None,
    hashes: Sequence[str] | None,
) -> pa.Table:
    """Return the clusters of a run after edits, the largest first."""
    numbers, labels = np.unique(groups.labels, return_inverse=True)
    # Images that are set aside are described like a cluster, which no row is made of.
    found = _described(assignments, labels, graph, tuple(hashes) if hashes else None)
    about = dict(zip(numbers.tolist(), found, strict=True))
    known = {row["cluster"]: row for row in table.to_pylist()}
    rows = [
        _NEW_ROW | known.get(number, {}) | about.get(number, {}) | _name(number, groups)
        for number in groups.names
    ]
    rows.sort(key=lambda row: (-row["size"], row["cluster"]))
    return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)


def renamed_clusters(table: pa.Table, groups: EditedGroups) -> pa.Table:
    """Return the clusters of a run of which only names were edited."""
    rows = [row | _name(row["cluster"], groups) for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)


def _name(number: int, groups: EditedGroups) -> dict[str, Any]:
    # A person's own names are no guesses.
    sure = {"name_confidence": 1.0, "guess": False} if number in groups.given else {}
    return {"cluster": number, "name": groups.names[number]} | sure


def _described(
    assignments: pa.Table,
    labels: NDArray[np.intp],
    graph: csr_array | None,
    hashes: tuple[str, ...] | None,
) -> list[dict[str, Any]]:
    """Return size, cohesion, typical and borderline images of clusters numbered from 0."""
    sizes = np.bincount(labels).tolist()
    confidence, second = (
        np.nan_to_num(_floats(assignments[name])) for name in ("confidence", "second_confidence")
    )
    unsure = Membership(labels, confidence, labels, second)
    held: Sequence[float | None] = [None] * len(sizes)
    if graph is None:
        order = np.lexsort((-confidence, labels))
        typical = [part[:12].tolist() for part in np.split(order, np.cumsum(sizes)[:-1])]
    else:
        held, typical = cohesion(graph, labels).tolist(), typical_images(graph, labels, hashes)
    columns = zip(sizes, held, typical, borderline_images(unsure), strict=True)
    return [
        dict(zip(("size", "cohesion", "exemplars", "borderline"), one, strict=True))
        for one in columns
    ]


def _successors(clusters: pa.ChunkedArray, groups: EditedGroups) -> NDArray[np.intp]:
    """Return the groups that computed clusters became; -1 for none."""
    successors = np.full(max(groups.successors, default=-1) + 2, SET_ASIDE, dtype=np.intp)
    for cluster, successor in groups.successors.items():
        # Another group may have taken all of its images.
        successors[cluster] = successor if successor in groups.names else SET_ASIDE
    return np.asarray(successors[clusters.fill_null(SET_ASIDE).to_numpy()])


def _names(numbers: NDArray[np.intp], groups: EditedGroups) -> pa.Array:
    every = np.full(groups.next_number + 1, None, dtype=object)
    for number, name in groups.names.items():
        every[number] = name
    return pa.array(every[numbers], pa.string())


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.array(column.cast(pa.float64()).fill_null(np.nan).to_numpy())


def _nulls(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
