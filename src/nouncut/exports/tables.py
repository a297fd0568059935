"""Tables in files whose suffix says how."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from nouncut.errors import OutputError
from nouncut.exports.csv_text import write_csv
from nouncut.exports.jsonl import write_jsonl
from nouncut.exports.parquet import write_parquet

_WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}


def check_table_file(destination: Path) -> None:
    """Raise unless a table can be written to a file of this name."""
    if destination.suffix.lower() not in _WRITERS:
        raise OutputError(f"{destination.name}: name a file that ends in {', '.join(_WRITERS)}.")


def write_table_file(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table in the format that the file's suffix names."""
    check_table_file(destination)
    _WRITERS[destination.suffix.lower()](table, destination, overwrite=overwrite)
