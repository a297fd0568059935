"""The tables of a run: their columns, and paths that are no text."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nouncut.compute.files import new_file
from nouncut.images.find import SkippedFile
from nouncut.runs.directory import table_path
from nouncut.runs.errors import damaged

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
SCHEMAS = {"assignments": ASSIGNMENTS_SCHEMA, "clusters": CLUSTERS_SCHEMA, "images": IMAGES_SCHEMA}

_SURROGATE = re.compile("[\ud800-\udfff]")


def unicode_text(text: str) -> str:
    r"""Return text that can be written as UTF-8."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def images_table(
    paths: Sequence[str | os.PathLike[str]],
    *,
    hashes: Sequence[str] | None = None,
    sizes: Sequence[int | None] | None = None,
    skipped: Sequence[SkippedFile] = (),
) -> pa.Table:
    r"""Return the table of all files that a run has seen."""
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
    texts, raw = images["path"].to_pylist(), images["raw_path"].to_pylist()
    return [
        Path(text if original is None else os.fsdecode(original))
        for text, original in zip(texts, raw, strict=True)
    ]


def write_table(directory: Path, name: str, table: pa.Table) -> None:
    """Write a table, to wait for its place."""
    with new_file(table_path(directory, name)) as file:
        pq.write_table(table, file, write_page_checksum=True)


def read_table(directory: Path, name: str) -> pa.Table:
    """Read a table."""
    path = table_path(directory, name)
    try:
        with path.open("rb") as file:
            table = pq.read_table(file, page_checksum_verification=True)
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(path, str(error)) from error
    return table


def check_table(directory: Path, name: str, n_rows: int) -> None:
    """Check that a table is there and whole, as far as its footer tells."""
    path = table_path(directory, name)
    try:
        with path.open("rb") as file, pq.ParquetFile(file) as parquet:
            schema, found = parquet.schema_arrow, parquet.metadata.num_rows
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(path, str(error)) from error
    for field in SCHEMAS[name]:
        if schema.get_field_index(field.name) < 0 or schema.field(field.name).type != field.type:
            raise damaged(path, f"it has no column {field.name!r} of type {field.type}")
    if found != n_rows:
        raise damaged(path, f"it has {found} rows instead of {n_rows}")
