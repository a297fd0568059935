"""Assignments as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from nouncut.exports.result import ExportResult
from nouncut.exports.rows import plain_rows
from nouncut.exports.writing import new_file

if TYPE_CHECKING:
    from nouncut.runs.run import Run


def export_jsonl(run: Run, destination: Path, *, overwrite: bool = False) -> ExportResult:
    """Write the assignments as JSON lines: one object per image, in UTF-8."""
    write_jsonl(run.assignments, destination, overwrite=overwrite)
    return ExportResult(destination, run.assignments.num_rows)


def write_jsonl(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table."""
    with (
        new_file(destination, overwrite=overwrite) as part,
        part.open("x", encoding="utf-8", newline="\n") as file,
    ):
        for row in plain_rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
