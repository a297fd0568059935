"""Assignments as a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from nouncut.exports.result import ExportResult
from nouncut.exports.writing import new_file

if TYPE_CHECKING:
    from nouncut.runs.run import Run


def export_parquet(run: Run, destination: Path, *, overwrite: bool = False) -> ExportResult:
    """Write the assignments as Parquet, with their types."""
    write_parquet(run.assignments, destination, overwrite=overwrite)
    return ExportResult(destination, run.assignments.num_rows)


def write_parquet(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table."""
    with new_file(destination, overwrite=overwrite) as part:
        pq.write_table(table, part, compression="zstd")
