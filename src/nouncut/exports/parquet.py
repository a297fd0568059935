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
    """Write the assignments as Parquet, with their types.

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
        How many rows were written.

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
    >>> import pyarrow.parquet as pq
    >>> from nouncut.exports.parquet import export_parquet
    >>> run = SimpleNamespace(assignments=pa.table({"path": ["/a.jpg"], "name": ["cat"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = export_parquet(run, Path(folder, "clusters.parquet"))
    ...     pq.read_table(result.path).to_pylist()
    [{'path': '/a.jpg', 'name': 'cat'}]
    """
    write_parquet(run.assignments, destination, overwrite=overwrite)
    return ExportResult(destination, run.assignments.num_rows)


def write_parquet(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    destination, overwrite
        As for `export_parquet`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from nouncut.exports.parquet import write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clusters.parquet")
    ...     write_parquet(pa.table({"name": ["cat"]}), path)
    ...     path.exists()
    True
    """
    with new_file(destination, overwrite=overwrite) as part:
        pq.write_table(table, part, compression="zstd")
