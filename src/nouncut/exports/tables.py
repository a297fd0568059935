"""Tables as CSV, JSON lines and Parquet."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nouncut.errors import OutputError, printable_path
from nouncut.exports.destination import check_export_file, export_file
from nouncut.exports.result import ExportResult

if TYPE_CHECKING:
    from nouncut.exports.part import Part

# Spreadsheets evaluate cells that begin like this; in East Asian settings, full-width signs too.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
# Terminals obey such characters when the table is shown there; CSV has no escapes of its own.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BATCH_ROWS = 8192


def export_table(
    file_format: str,
    part: Part,
    destination: Path,
    *,
    overwrite: bool = False,
    preview: bool = False,
) -> ExportResult:
    """Write the assignments of images as "csv", "jsonl" or "parquet"."""
    check_export_file(destination, overwrite=overwrite)
    if not preview:
        with export_file(destination, overwrite=overwrite) as file:
            _WRITERS[file_format](part.tables(), file)
    return ExportResult(destination, len(part.rows), files=[destination], is_preview=preview)


def check_table_file(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that `write_table_file` cannot write to."""
    if _file_format(path) not in _WRITERS:
        raise OutputError(
            f"Tables are written as .csv, .jsonl or .parquet, not as {printable_path(path.name)}. "
            "Choose another `output`."
        )
    check_export_file(path, overwrite=overwrite)


def write_table_file(table: pa.Table, path: Path, *, overwrite: bool = False) -> None:
    """Write a table in the format that the file's suffix names."""
    check_table_file(path, overwrite=overwrite)
    with export_file(path, overwrite=overwrite) as file:
        _WRITERS[_file_format(path)]([table], file)


def plain_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Iterate over rows as Python values; floats have the digits of their type, NaN is None."""
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        columns = [_shortest_floats(column) for column in batch.columns]
        yield from pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()


def _file_format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _write_csv(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    # pyarrow's own writer quotes every text, ends lines with \n, and writes NaN as "nan".
    writer = csv.writer(codecs.getwriter("utf-8")(file))
    for number, table in enumerate(tables):
        if not number:
            writer.writerow(table.column_names)
        for row in plain_rows(table):
            writer.writerow([_csv_cell(value) for value in row.values()])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        text = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
        return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _write_jsonl(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    for table in tables:
        for row in plain_rows(table):
            file.write(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n".encode())


def _write_parquet(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    every = iter(tables)
    first = next(every)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for table in chain([first], every):
            writer.write_table(table)


_WRITERS: dict[str, Callable[[Iterable[pa.Table], BinaryIO], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}


def _shortest_floats(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    # A float32 of 0.9 is 0.8999999761581421 as a float64; by way of its text it stays 0.9.
    exact = pc.cast(pc.cast(column, pa.string()), pa.float64())
    return pc.if_else(pc.is_finite(exact), exact, None)
