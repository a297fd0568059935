"""The tables of a run with edits applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.method.membership import Membership
from nouncut.runs.edits import SET_ASIDE, EditedGroups
from nouncut.runs.exemplars import (
    borderline_images,
    degrees,
    edges_within,
    heaviest_images,
    share_within,
)
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, table_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nouncut.runs.run import Run

_NEW_ROW = {"more_words": [], "gloss": "", "name_confidence": 0.0, "guess": False}


def edited_assignments(table: pa.Table, groups: EditedGroups) -> pa.Table:
    """Return the assignments of a run after edits.

    Images that are set aside have no cluster. Images that a person moved are certain. Of a second
    choice that was merged with the cluster, both confidences count for the cluster. Nothing was
    computed about images in groups that were found later.
    """
    labels, by_hand = groups.labels, groups.by_hand
    found = np.isin(labels, list(groups.found)) & ~by_hand
    second = _successors(table["second_cluster"], groups)
    confidence = _floats(table["confidence"])
    second_confidence = _floats(table["second_confidence"])
    joined = (second == labels) & ~by_hand
    both = np.minimum(1, confidence + np.nan_to_num(second_confidence))
    confidence = np.where(joined, both, confidence)
    confidence = np.where(by_hand, 1.0, confidence)
    confidence[(labels == SET_ASIDE) | found] = np.nan
    has_no_second = (second < 0) | (second == labels) | by_hand | found
    columns = {
        "path": table["path"],
        "cluster": pa.array(labels, mask=labels == SET_ASIDE),
        "name": _names(labels, groups),
        "confidence": _nulls(confidence),
        "second_cluster": pa.array(second, mask=has_no_second),
        "second_name": _names(np.where(has_no_second, SET_ASIDE, second), groups),
        "second_confidence": _nulls(np.where(has_no_second, np.nan, second_confidence)),
        "outlier": table["outlier"].to_numpy() & ~by_hand & ~found,
    }
    return table_of(columns, ASSIGNMENTS_SCHEMA)


def edited_clusters(run: Run) -> pa.Table:
    """Return the clusters of a run that has edits, the largest first."""
    table, groups = run.all_clusters, run.groups
    if np.array_equal(groups.labels, run.computed.labels):
        return renamed_clusters(table, groups)
    found = run.computed.group_facts.describe(groups.labels, run.assignments)
    rows = described_clusters(table, groups, found)
    rows.sort(key=lambda row: (-row["size"], row["cluster"]))
    return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)


def described_clusters(
    table: pa.Table, groups: EditedGroups, facts: Mapping[int, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for every group: what the table says of it, new facts, and its name."""
    known = {row["cluster"]: row for row in table.to_pylist()}
    return [
        _NEW_ROW | known.get(number, {}) | facts.get(number, {}) | _name(number, groups)
        for number in groups.names
    ]


def renamed_clusters(table: pa.Table, groups: EditedGroups) -> pa.Table:
    """Return the clusters of a run of which only names were edited."""
    rows = [
        row | _name(row["cluster"], groups)
        for row in table.to_pylist()
        if row["cluster"] in groups.names
    ]
    rows.sort(key=lambda row: -row["size"])
    return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)


def _name(number: int, groups: EditedGroups) -> dict[str, Any]:
    # A person's own names are no guesses.
    sure = {"name_confidence": 1.0, "guess": False} if number in groups.given else {}
    return {"cluster": number, "name": groups.names[number]} | sure


class _State(NamedTuple):
    """What was described last, and the descriptions by the numbers of the groups."""

    columns: tuple[NDArray[Any], ...]  # label, confidence and second confidence of the images
    facts: dict[int, dict[str, Any]]


class GroupFacts:
    """Size, cohesion, typical and borderline images of groups.

    Most edits change few groups: the others are not described again.
    """

    def __init__(self, graph: csr_array | None, hashes: pa.Array) -> None:
        self._graph = graph
        self._degrees = None if graph is None else degrees(graph)
        # Without all contents, copies cannot be found.
        self._contents = None if hashes.null_count else _codes(hashes)
        self._state: _State | None = None

    def describe(
        self, labels: NDArray[np.intp], assignments: pa.Table
    ) -> dict[int, dict[str, Any]]:
        """Return the facts about all groups by number."""
        sure = (assignments["confidence"], assignments["second_confidence"])
        columns = (labels, *(np.nan_to_num(_floats(column)) for column in sure))
        state = self._state
        if state is None:
            facts = self._described(columns, labels >= 0)
        else:
            pairs = zip(columns, state.columns, strict=True)
            differs = np.logical_or.reduce([new != old for new, old in pairs])
            changed = np.zeros(max(labels.max(), state.columns[0].max()) + 2, dtype=bool)
            changed[labels[differs]] = changed[state.columns[0][differs]] = True
            changed[SET_ASIDE] = False
            facts = {n: about for n, about in state.facts.items() if not changed[n]}
            facts |= self._described(columns, changed[labels])
        self._state = _State(columns, facts)
        return facts

    def _described(
        self, columns: tuple[NDArray[Any], ...], chosen: NDArray[np.bool_]
    ) -> dict[int, dict[str, Any]]:
        """Describe the groups of the chosen images."""
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return {}
        labels, confidence, second = (column[rows] for column in columns)
        numbers, inside = np.unique(labels, return_inverse=True)
        unsure = borderline_images(Membership(inside, confidence, inside, second))
        contents = None if self._contents is None else self._contents[rows]
        held: Sequence[float | None] = [None] * len(numbers)
        if self._graph is None or self._degrees is None:
            typical = heaviest_images(confidence, inside)
        else:
            within = self._within(columns[0], rows)
            held = share_within(within, self._degrees[rows], inside).tolist()
            typical = heaviest_images(within, inside, contents)
        lists = ([rows[part].tolist() for part in parts] for parts in (typical, unsure))
        found = zip(np.bincount(inside).tolist(), held, *lists, strict=True)
        names = ("size", "cohesion", "exemplars", "borderline")
        return {
            number: dict(zip(names, one, strict=True))
            for number, one in zip(numbers.tolist(), found, strict=True)
        }

    def _within(self, labels: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        if len(rows) > len(labels) // 2:  # picking most edges takes longer than using all
            return np.asarray(edges_within(self._graph, labels)[rows])
        return edges_within(self._graph, labels, rows)


def _codes(hashes: pa.Array) -> NDArray[np.intp]:
    """Return equal numbers for equal texts."""
    return np.asarray(hashes.dictionary_encode().indices, dtype=np.intp)


def _successors(clusters: pa.ChunkedArray, groups: EditedGroups) -> NDArray[np.intp]:
    """Return the groups that computed clusters became; -1 for none."""
    successors = np.full(max(groups.successors, default=-1) + 2, SET_ASIDE, dtype=np.intp)
    for cluster, successor in groups.successors.items():
        # Another group may have taken all of its images.
        successors[cluster] = successor if successor in groups.names else SET_ASIDE
    return np.asarray(successors[clusters.fill_null(SET_ASIDE).to_numpy()])


def _names(numbers: NDArray[np.intp], groups: EditedGroups) -> pa.Array:
    known = [groups.names.get(number) for number in range(groups.next_number)]
    return pa.array(known, pa.string()).take(pa.array(numbers, mask=numbers < 0))


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.array(column.cast(pa.float64()).fill_null(np.nan).to_numpy())


def _nulls(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
