"""The tables of a run: columns, reading, writing, and paths that are not valid text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from nouncut.compute.files import AnyPath, new_file
from nouncut.errors import InputError
from nouncut.images.find import SkippedFile
from nouncut.runs.checksums import check_file, open_inside
from nouncut.runs.directory import damaged, table_path, table_paths

ASSIGNMENTS_SCHEMA = pa.schema(
    {
        "path": pa.string(),
        "cluster": pa.int32(),
        "name": pa.string(),
        "confidence": pa.float32(),
        "second_cluster": pa.int32(),
        "second_name": pa.string(),
        "second_confidence": pa.float32(),
        "outlier": pa.bool_(),
    }
)
CLUSTERS_SCHEMA = pa.schema(
    {
        "cluster": pa.int32(),
        "name": pa.string(),
        "more_words": pa.list_(pa.string()),
        "gloss": pa.string(),
        "name_confidence": pa.float32(),
        "guess": pa.bool_(),
        "size": pa.int32(),
        "cohesion": pa.float32(),
        "exemplars": pa.list_(pa.int32()),
        "borderline": pa.list_(pa.int32()),
    }
)
IMAGES_SCHEMA = pa.schema(
    {
        "path": pa.string(),
        "raw_path": pa.binary(),
        "hash": pa.string(),
        "bytes": pa.int64(),
        "error": pa.string(),
        "row": pa.int32(),
    }
)
# Columns that runs of version 0.1.0 lack, and what their rows get.
_NEW_COLUMNS: dict[str, Any] = {"name_confidence": None, "guess": False}
SCHEMAS = {"assignments": ASSIGNMENTS_SCHEMA, "clusters": CLUSTERS_SCHEMA, "images": IMAGES_SCHEMA}

_SURROGATE = re.compile("[\ud800-\udfff]")


def unicode_text(text: str) -> str:
    """Replace lone surrogates, so that text can be written as UTF-8."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def path_texts(paths: Sequence[AnyPath]) -> list[str]:
    """Return paths as text that can be written as UTF-8."""
    return [unicode_text(os.fspath(path)) for path in paths]


def table_of(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return columns as a table, cast to the types of a schema."""
    known = (pa.Array, pa.ChunkedArray)
    every = (columns[field.name] for field in schema)
    arrays = [
        (one if isinstance(one, known) else pa.array(one)).cast(field.type)
        for one, field in zip(every, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def images_table(
    paths: Sequence[AnyPath],
    *,
    hashes: Sequence[str] | None = None,
    sizes: Sequence[int | None] | None = None,
    skipped: Sequence[SkippedFile] = (),
) -> pa.Table:
    """Return the table of all files of a run: the clustered ones, then the skipped ones."""
    every = [os.fspath(path) for path in [*paths, *(file.path for file in skipped)]]
    texts = [unicode_text(path) for path in every]
    nothing = [None] * len(skipped)
    unknown = [None] * len(paths)
    columns = {
        "path": texts,
        "raw_path": [
            None if path == text else os.fsencode(path)
            for path, text in zip(every, texts, strict=True)
        ],
        "hash": [*(unknown if hashes is None else hashes), *nothing],
        "bytes": [*(unknown if sizes is None else sizes), *nothing],
        "error": [*unknown, *(unicode_text(file.reason) for file in skipped)],
        "row": [*range(len(paths)), *nothing],
    }
    return pa.table(columns, schema=IMAGES_SCHEMA)


def real_paths(images: pa.Table) -> list[Path]:
    """Return the paths of a table of images as the file system knows them."""
    return [Path(path) for path in original_texts(images)]


def original_texts(images: pa.Table) -> list[str]:
    """Return paths and addresses as they were before they had to be valid text."""
    texts, raw = images["path"].to_pylist(), images["raw_path"].to_pylist()
    return [
        text if original is None else os.fsdecode(original)
        for text, original in zip(texts, raw, strict=True)
    ]


def write_table(directory: Path, name: str, table: pa.Table) -> None:
    """Write a table beside its final path; `commit_file` renames it."""
    with new_file(table_path(directory, name)) as file:
        pq.write_table(table, file, write_page_checksum=True)


def read_table(
    directory: Path, name: str, checksum: Callable[[Path], str | None], n_parts: int = 0
) -> pa.Table:
    """Read a table, all parts of a large one; `checksum` returns that of a file, if it is known."""
    paths = table_paths(directory, name, n_parts)
    tables = [read_part(path, directory, checksum(path)) for path in paths]
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return _with_new_columns(table, SCHEMAS[name])


def count_rows(path: Path, directory: Path) -> int:
    """Return the number of rows of a file of a table."""
    with _opened(path, directory) as (_, parquet):
        return int(parquet.metadata.num_rows)


def read_part(path: Path, directory: Path, checksum: str | None) -> pa.Table:
    """Read one file of a table, after comparing it with its checksum."""
    with _opened(path, directory) as (file, parquet):
        check_file(file, path, checksum)
        # Arrow's threads hold on to the file. If the interpreter ends before they let go of it,
        # they wait for its lock for ever, and end the process with SIGABRT.
        table = parquet.read(use_threads=False)
        table.validate(full=True)
    return table


def check_footer(directory: Path, name: str, n_rows: int, n_parts: int = 0) -> None:
    """Raise unless the footers of a table have the right columns and number of rows."""
    paths = table_paths(directory, name, n_parts)
    found = sum(_check_one_footer(path, directory, name) for path in paths)
    if found != n_rows:
        place = paths[0] if len(paths) == 1 else paths[0].parent
        raise damaged(place, f"it has {found} rows instead of {n_rows}")


def _check_one_footer(path: Path, directory: Path, name: str) -> int:
    """Raise unless the footer of a file has the right columns; return its number of rows."""
    with _opened(path, directory) as (file, parquet):
        schema, found = parquet.schema_arrow, int(parquet.metadata.num_rows)
        n_bytes = os.fstat(file.fileno()).st_size
    for field in SCHEMAS[name]:
        if field.name in _NEW_COLUMNS and field.name not in schema.names:
            continue
        if schema.get_field_index(field.name) < 0 or schema.field(field.name).type != field.type:
            raise damaged(path, f"it has no column {field.name!r} of type {field.type}")
    # A few bytes can stand for billions of equal rows, but paths differ.
    if found > n_bytes:
        raise damaged(path, f"it has {found} rows in {n_bytes} bytes")
    return found


@contextmanager
def _opened(path: Path, directory: Path) -> Iterator[tuple[BinaryIO, pq.ParquetFile]]:
    try:
        with (
            open_inside(path, directory) as file,
            # Unlike pq.read_table, this does not import Arrow's data sets, which takes a while.
            pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False) as parquet,
        ):
            yield file, parquet
    except InputError:
        raise
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        raise damaged(path, str(error)) from error


def _with_new_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for position, field in enumerate(schema):
        if field.name in _NEW_COLUMNS and field.name not in table.schema.names:
            values = pa.array([_NEW_COLUMNS[field.name]] * len(table), field.type)
            table = table.add_column(position, field, values)
    return table
