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
    """Raise unless a table can be written to a file of this name.

    Parameters
    ----------
    destination : Path
        The file.

    Raises
    ------
    OutputError
        If its suffix is unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.exports.tables import check_table_file
    >>> check_table_file(Path("new.xls"))
    Traceback (most recent call last):
    ...
    nouncut.errors.OutputError: new.xls: name a file that ends in .csv, .jsonl, .parquet.
    """
    if destination.suffix.lower() not in _WRITERS:
        raise OutputError(f"{destination.name}: name a file that ends in {', '.join(_WRITERS)}.")


def write_table_file(table: pa.Table, destination: Path, *, overwrite: bool = False) -> None:
    """Write a table in the format that the file's suffix names.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    destination : Path
        The file, which ends in .csv, .jsonl or .parquet.
    overwrite : bool, default=False
        Whether to replace a file that is there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from nouncut.exports.tables import write_table_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     write_table_file(pa.table({"name": ["cat"]}), path)
    ...     path.read_text().split()
    ['name', 'cat']
    """
    check_table_file(destination)
    _WRITERS[destination.suffix.lower()](table, destination, overwrite=overwrite)
