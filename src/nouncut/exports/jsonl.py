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
    """Write the assignments as JSON lines: one object per image, in UTF-8.

    Parameters
    ----------
    run : Run
        A finished run.
    destination : Path
        The file to write.
    overwrite : bool, default=False
        Whether to replace a file that is there.

    Returns
    -------
    ExportResult
        How many lines were written.

    Raises
    ------
    OutputError
        If there is a file already, or the disk refuses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from types import SimpleNamespace
    >>> import pyarrow as pa
    >>> from nouncut.exports.jsonl import export_jsonl
    >>> run = SimpleNamespace(assignments=pa.table({"path": ["/a.jpg"], "name": ["café"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = export_jsonl(run, Path(folder, "clusters.jsonl"))
    ...     print(result.path.read_text(encoding="utf-8"))
    {"path": "/a.jpg", "name": "café"}
    """
    write_jsonl(run.assignments, destination, overwrite=overwrite)
    return ExportResult(destination, run.assignments.num_rows)


def write_jsonl(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    destination, overwrite
        As for `export_jsonl`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from nouncut.exports.jsonl import write_jsonl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clusters.jsonl")
    ...     write_jsonl(pa.table({"name": ["cat"]}), path)
    ...     path.exists()
    True
    """
    with (
        new_file(destination, overwrite=overwrite) as part,
        part.open("x", encoding="utf-8", newline="\n") as file,
    ):
        for row in plain_rows(table):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
