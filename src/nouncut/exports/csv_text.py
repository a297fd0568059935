"""Assignments as a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nouncut.exports.result import ExportResult
from nouncut.exports.rows import plain_rows
from nouncut.exports.writing import new_file

if TYPE_CHECKING:
    from nouncut.runs.run import Run

# Spreadsheets compute cells that begin like this, the full-width signs in East Asian settings.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def export_csv(run: Run, destination: Path, *, overwrite: bool = False) -> ExportResult:
    """Write the assignments as CSV: RFC 4180, UTF-8, one header line, empty cells for nulls.

    Texts that a spreadsheet would take for a formula (``=1+1``) get an apostrophe in front; the
    other formats hold them as they are.
    """
    write_csv(run.assignments, destination, overwrite=overwrite)
    return ExportResult(destination, run.assignments.num_rows)


def write_csv(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table."""
    with (
        new_file(destination, overwrite=overwrite) as part,
        part.open("x", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in plain_rows(table):
            writer.writerow([_cell(value) for value in row.values()])


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
