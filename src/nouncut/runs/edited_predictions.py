"""Predictions of computed clusters turned into those of edited groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.runs.edits import SET_ASIDE
from nouncut.runs.grown_edits import Arrivals, grow_edits
from nouncut.runs.run import Run


def edited_predictions(run: Run, table: pa.Table, features: NDArray[np.float32]) -> pa.Table:
    """Return predictions in edited groups; `features` are those of the new images.

    The groups are those that `grow_edits` would put the images into.
    """
    second = table["second_cluster"].fill_null(SET_ASIDE).to_numpy()
    own, other = _follow(run, table["cluster"].to_numpy(), features), _follow(run, second, features)
    names = run.groups.names
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


def _follow(
    run: Run, clusters: NDArray[np.intp], features: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return the groups of new images of computed clusters."""
    n_known = len(run.computed.labels)
    arrivals = Arrivals(clusters, features, np.full(len(clusters), -1))
    return grow_edits(run, np.arange(n_known), arrivals).groups.labels[n_known:]
