"""Ready features as shards: .npy and .parquet files, one by one or in folders."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import InputError, describe_error
from nouncut.models.precomputed import FEATURE_NAMES, PATH_NAMES
from nouncut.runs.tables import images_table

SUFFIXES = (".npy", ".parquet")
# Features of one shard are copied a few times.
_COPIES = 6
_MOST_ROWS = 100_000

Shard = dict[str, Any]


def feature_shards(
    sources: Sequence[str], worker_bytes: int, options: Options | None = None
) -> list[Shard]:
    """List the parts of feature files that one task reads, in the order of their names."""
    files = [file for source in sources for file in _feature_files(source, options or {})]
    shards = [shard for file in files for shard in _shards_of(file, worker_bytes, options or {})]
    widths = {shard["width"] for shard in shards}
    if len(widths) > 1:
        raise InputError(
            f"The files have features of {min(widths)} to {max(widths)} numbers. Pass features of "
            "one model."
        )
    return shards


def read_shard(storage: Storage, number: int, shard: Shard, model: str = "auto") -> Result:
    """Copy the features of a shard, with a table of the images.

    Those of a known model become the features that compare images with each other, and, if these
    are others, with words.
    """
    features, names = _read_rows(shard)
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{shard['path']}: row {shard['start'] + int(np.argmin(finite))} (counted from 0) has "
            f"values that are not finite numbers, and so have {np.count_nonzero(~finite) - 1:,} "
            "others near it. Remove these rows."
        )
    if model != "auto":
        features = _of_model(storage, number, shard, features, model)
    storage.write(f"features/{number:05d}.npy", features)
    buffer = io.BytesIO()
    pq.write_table(images_table(names), buffer)
    storage.write_bytes(f"images/{number:05d}.parquet", buffer.getbuffer())
    return {"n_rows": len(features), "n_skipped": 0}


def _of_model(
    storage: Storage, number: int, shard: Shard, rows: NDArray[np.float32], model: str
) -> NDArray[np.float32]:
    """Return the visual features of a model's rows; write rows and semantic features if others."""
    from nouncut.models.choose import load_encoder

    encoder = load_encoder(model).encoder
    if rows.shape[1] != encoder.image_dim:
        raise InputError(
            f"{shard['path']}: rows of {rows.shape[1]} numbers are not from {encoder.name}, whose "
            f"rows have {encoder.image_dim}. Pass the `model` that made them."
        )
    if not encoder.shares_space:
        storage.write(f"rows/{number:05d}.npy", rows)
        semantic = np.asarray(encoder.semantic(rows), np.float32)
        storage.write(f"semantic/{number:05d}.npy", semantic)
    return np.asarray(encoder.visual(rows), np.float32)


def _feature_files(source: str, options: Options) -> list[str]:
    system, path = fsspec.core.url_to_fs(source, **options)
    if not system.exists(path):
        raise InputError(f"{source} does not exist. Check the spelling.")
    if not system.isdir(path):
        return [source]
    found = sorted(name for name in system.find(path) if name.endswith(SUFFIXES))
    return [system.unstrip_protocol(name) for name in found]


def _shards_of(file: str, worker_bytes: int, options: Options) -> list[Shard]:
    shape, version = _shape(file, options), _version(file, options)
    at_once = max(1, min(_MOST_ROWS, worker_bytes // (_COPIES * 4 * max(1, shape[1]))))
    return [
        {
            "path": file,
            "start": start,
            "stop": min(start + at_once, shape[0]),
            "width": shape[1],
            "version": version,
            "options": dict(options),
        }
        for start in range(0, shape[0], at_once)
    ]


def _version(file: str, options: Options) -> str:
    """Return what changes when a file is written."""
    system, path = fsspec.core.url_to_fs(file, **options)
    info = system.info(path)
    return " ".join(str(info.get(key, "")) for key in ("size", "mtime", "ETag", "etag"))


def _shape(file: str, options: Options) -> tuple[int, int]:
    try:
        if file.endswith(".parquet"):
            with fsspec.open(file, "rb", **options) as opened, pq.ParquetFile(opened) as parquet:
                column = _feature_column(parquet.schema_arrow)
                first = next(parquet.iter_batches(1, columns=[column]))
                return parquet.metadata.num_rows, len(first.column(0)[0])
        with fsspec.open(file, "rb", **options) as opened:
            version = np.lib.format.read_magic(opened)
            major = version[0]
            reader = getattr(np.lib.format, f"read_array_header_{min(major, 2)}_0")
            shape, is_fortran, dtype = reader(opened)
            n_expected = opened.tell() + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            if opened.seek(0, os.SEEK_END) < n_expected:
                raise ValueError("it ends early")
    except (OSError, ValueError, StopIteration, pa.ArrowException) as error:
        raise InputError(
            f"{file} cannot be read ({describe_error(error)}). Check the file, or save it again."
        ) from error
    if len(shape) != 2 or is_fortran or dtype.kind not in "fiu":
        raise InputError(
            f"{file} has shape {shape} and type {dtype}. Save features as a matrix of numbers, row "
            "by row, with one row per image."
        )
    return int(shape[0]), int(shape[1])


def _feature_column(schema: pa.Schema) -> str:
    lists = [
        f.name for f in schema if pa.types.is_list(f.type) or pa.types.is_fixed_size_list(f.type)
    ]
    named = [name for name in FEATURE_NAMES if name in lists]
    if not named and len(lists) != 1:
        raise ValueError(f"which of the columns {lists} are the features? Name them 'features'")
    return named[0] if named else lists[0]


def _read_rows(shard: Shard) -> tuple[NDArray[np.float32], list[str]]:
    path, start, stop = shard["path"], shard["start"], shard["stop"]
    if path.endswith(".npy"):
        folder, _, name = path.rpartition("/")
        rows = Storage(folder, shard["options"]).read(name, start, stop)
        return np.ascontiguousarray(rows, np.float32), [f"row {i}" for i in range(start, stop)]
    with fsspec.open(path, "rb", **shard["options"]) as opened, pq.ParquetFile(opened) as parquet:
        column = _feature_column(parquet.schema_arrow)
        known = [name for name in PATH_NAMES if name in parquet.schema_arrow.names]
        table = _some_rows(parquet, [column, *known[:1]], start, stop)
    features = np.stack(table[column].to_numpy()).astype(np.float32)
    names = table[known[0]].to_pylist() if known else range(start, stop)
    return features, [str(name) if known else f"row {name}" for name in names]


def _some_rows(parquet: pq.ParquetFile, columns: list[str], start: int, stop: int) -> pa.Table:
    """Read rows of a file without the row groups before and after them."""
    ends = np.cumsum(
        [0] + [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
    )
    groups = [i for i in range(parquet.num_row_groups) if ends[i] < stop and ends[i + 1] > start]
    table = parquet.read_row_groups(groups, columns=columns, use_threads=False)
    return table.slice(start - ends[groups[0]], stop - start)
