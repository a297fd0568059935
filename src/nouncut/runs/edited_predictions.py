"""Predictions of computed clusters turned into those of edited groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.runs.edits import SET_ASIDE, EditedGroups
from nouncut.runs.run import Run


def edited_predictions(run: Run, table: pa.Table, features: NDArray[np.float32]) -> pa.Table:
    """Return predictions in edited groups; `features` are those of the new images.

    An image of a cluster that was split goes to the part whose mean is nearest. An image of a
    cluster whose images are all set aside belongs to no group.
    """
    groups, computed = run.groups, run.computed.labels
    first = table["cluster"].to_numpy()
    second = table["second_cluster"].fill_null(SET_ASIDE).to_numpy()
    own, other = np.full(len(first), SET_ASIDE), np.full(len(second), SET_ASIDE)
    for cluster in np.union1d(first, second[second >= 0]).tolist():
        parts = _parts(groups, computed, cluster)
        here, there = np.flatnonzero(first == cluster), np.flatnonzero(second == cluster)
        own[here] = _nearest(run, parts, features[here])
        other[there] = _nearest(run, parts, features[there])
    names = groups.names
    confidence, rest = (
        np.nan_to_num(table[name].to_numpy()) for name in ("confidence", "second_confidence")
    )
    joined = (own == other) & (second >= 0)
    has_no_second = (other < 0) | joined
    columns = {
        "cluster": pa.array(own, mask=own < 0),
        "name": pa.array([names.get(number) for number in own.tolist()]),
        "confidence": np.where(joined, np.fmin(1, confidence + rest), confidence),
        "second_cluster": pa.array(other, mask=has_no_second),
        "second_name": pa.array(
            [names.get(number) for number in np.where(has_no_second, SET_ASIDE, other).tolist()]
        ),
        "second_confidence": pa.array(rest, mask=has_no_second),
    }
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        column = pa.array(values).cast(table.schema.field(at).type)
        table = table.set_column(at, table.schema.field(at), column)
    return table


def _parts(
    groups: EditedGroups, computed: NDArray[np.intp], cluster: int
) -> dict[int, NDArray[np.intp]]:
    """Return the images of a computed cluster by the groups that they are in now."""
    rows = np.flatnonzero((computed == cluster) & ~groups.by_hand)
    if not len(rows):
        rows = np.flatnonzero((computed == cluster) & (groups.labels >= 0))
    return {int(n): rows[groups.labels[rows] == n] for n in np.unique(groups.labels[rows])}


def _nearest(
    run: Run, parts: dict[int, NDArray[np.intp]], features: NDArray[np.float32]
) -> NDArray[np.intp] | int:
    """Return for every image the part whose mean direction is nearest."""
    if len(parts) < 2:
        return next(iter(parts), SET_ASIDE)
    known = run.array("features")
    means = [unit_rows(known[rows]).mean(axis=0) for rows in parts.values()]
    nearest = np.argmax(unit_rows(features) @ np.stack(means).T, axis=1)
    return np.asarray(np.take(list(parts), nearest))
