"""Whether the values of a run's tables can be: ranges, missing values, and texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nouncut.runs.directory import damaged, table_path

_REQUIRED = {
    "assignments": ("path", "cluster", "name", "outlier"),
    "clusters": ("cluster", "name", "size", "exemplars", "borderline"),
    "images": ("path",),
}
_SHARES = ("confidence", "second_confidence", "name_confidence")
# Rounding to single precision may exceed 1.
_LARGEST_SHARE = 1.001
_HASH = "^[0-9a-f]{16,128}$"


def check_values(
    table: pa.Table, name: str, directory: Path, n_images: int, n_clusters: int
) -> None:
    """Raise an `InputError` unless all values of a table can be those of a run."""
    problem = _missing(table, name) or _CHECKS[name](table, n_images, n_clusters)
    if problem:
        raise damaged(table_path(directory, name), f"its column {problem}")


def _missing(table: pa.Table, name: str) -> str | None:
    for column in _REQUIRED[name]:
        if table[column].null_count:
            return f"{column!r} has missing values"
    for column in _SHARES:
        if column in table.column_names and not _in_range(table[column], -0.001, _LARGEST_SHARE):
            return f"{column!r} has values that are no probabilities"
    return None


def _assignments(table: pa.Table, n_images: int, n_clusters: int) -> str | None:
    for column in ("cluster", "second_cluster"):
        if not _in_range(table[column], 0, n_clusters - 1):
            return f"{column!r} has numbers that are not from 0 to {n_clusters - 1}"
    return _wrong_path(table["path"], "path")


def _clusters(table: pa.Table, n_images: int, n_clusters: int) -> str | None:
    if not np.array_equal(table["cluster"].to_numpy(), np.arange(n_clusters)):
        return f"'cluster' has not the numbers from 0 to {n_clusters - 1} in order"
    if not _in_range(table["size"], 0, n_images) or (pc.sum(table["size"]).as_py() or 0) > n_images:
        return f"'size' has numbers that do not fit {n_images} images"
    for column in ("exemplars", "borderline"):
        rows = pc.list_flatten(table[column])
        if rows.null_count or not _in_range(rows, 0, n_images - 1):
            return f"{column!r} has numbers that are not from 0 to {n_images - 1}"
    if pc.list_flatten(table["more_words"]).null_count:
        return "'more_words' has missing values"
    return None


def _images(table: pa.Table, n_images: int, n_clusters: int) -> str | None:
    rows = table["row"]
    clustered = np.asarray(rows.slice(0, n_images).fill_null(-1))
    if (
        not np.array_equal(clustered, np.arange(n_images))
        or rows.null_count != len(rows) - n_images
    ):
        return f"'row' has not the numbers from 0 to {n_images - 1} in order"
    if not pc.all(pc.match_substring_regex(table["hash"], _HASH), min_count=0).as_py():
        return "'hash' has values that are no hashes"
    if not _in_range(table["bytes"], 0, 2**62):
        return "'bytes' has values that are no sizes"
    texts = table["raw_path"]
    return _wrong_path(table["path"], "path") or _wrong_path(texts, "raw_path")


def _in_range(numbers: pa.ChunkedArray, low: float, high: float) -> bool:
    """Return whether all numbers that are known are in a range; NaN is unknown."""
    ends = pc.min_max(numbers).as_py()
    found = [end for end in ends.values() if end is not None and end == end]
    return all(low <= end <= high for end in found)


def _wrong_path(paths: pa.ChunkedArray, name: str) -> str | None:
    has_zero = pc.match_substring(paths, "\0")
    return f"{name!r} has values that are no paths" if pc.any(has_zero).as_py() else None


_CHECKS = {"assignments": _assignments, "clusters": _clusters, "images": _images}
