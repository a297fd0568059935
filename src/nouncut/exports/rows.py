"""Rows of the assignments as plain Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 8192


def plain_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a table, in batches, so that few are in memory at once."""
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        columns = [_short(column) for column in batch.columns]
        yield from pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()


def _short(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    # A float becomes text with the digits of its own precision, and these digits a double.
    exact = pc.cast(pc.cast(column, pa.string()), pa.float64())
    return pc.if_else(pc.is_finite(exact), exact, None)
