"""Whether the values of a run's tables can be: ranges, missing values, and texts.

Without `pyarrow.compute`, whose import would take most of the time of a run with nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.runs.directory import damaged, table_path

_REQUIRED = {
    "assignments": ("path", "cluster", "name", "outlier"),
    "clusters": ("cluster", "name", "size", "exemplars", "borderline"),
    "images": ("path",),
}
_SHARES = ("confidence", "second_confidence", "name_confidence")
# Single precision may round a little above 1.
_SHARE_RANGE = (-0.001, 1.001)
_LARGEST_FILE = 2**62
_HASH_LENGTHS = (16, 128)
_IS_HEX = np.isin(np.arange(256), list(b"0123456789abcdef"))


def check_values(
    table: pa.Table, name: str, directory: Path, n_images: int, n_clusters: int, first: int = 0
) -> None:
    """Raise an `InputError` unless all values of a table can be those of a run.

    The table may be a part of one, which begins with the row `first`.
    """
    check = partial(_wrong_images, first=first) if name == "images" else _CHECKS[name]
    problem = _wrong_anywhere(table, name) or check(table, n_images, n_clusters)
    if problem:
        raise damaged(table_path(directory, name), f"its column {problem}")


def _wrong_anywhere(table: pa.Table, name: str) -> str | None:
    for column in _REQUIRED[name]:
        if table[column].null_count:
            return f"{column!r} has missing values"
    for column in _SHARES:
        if column in table.column_names and not _in_range(table[column], *_SHARE_RANGE):
            return f"{column!r} has values that are no probabilities"
    for column in ("path", "raw_path"):
        if column in table.column_names and _has_zero(table[column]):
            return f"{column!r} has values that are no paths"
    return None


def _wrong_assignments(table: pa.Table, n_images: int, n_clusters: int) -> str | None:
    for column in ("cluster", "second_cluster"):
        if not _in_range(table[column], 0, n_clusters - 1):
            return f"{column!r} has numbers that are not from 0 to {n_clusters - 1}"
    return None


def _wrong_clusters(table: pa.Table, n_images: int, n_clusters: int) -> str | None:
    if not np.array_equal(table["cluster"].to_numpy(), np.arange(n_clusters)):
        return f"'cluster' has not the numbers from 0 to {n_clusters - 1} in order"
    sizes = table["size"].to_numpy()
    if not _in_range(table["size"], 0, n_images) or sizes.sum(dtype=np.int64) > n_images:
        return f"'size' has numbers that do not fit {n_images} images"
    for column in ("exemplars", "borderline"):
        for rows in _items(table[column]):
            if rows.null_count or not _in_range(rows, 0, n_images - 1):
                return f"{column!r} has numbers that are not from 0 to {n_images - 1}"
    if any(words.null_count for words in _items(table["more_words"])):
        return "'more_words' has missing values"
    return None


def _wrong_images(table: pa.Table, n_images: int, n_clusters: int, first: int = 0) -> str | None:
    n_clustered = min(len(table), max(0, n_images - first))
    clustered, skipped = table["row"].slice(0, n_clustered), table["row"].slice(n_clustered)
    is_numbered = np.array_equal(clustered.to_numpy(), first + np.arange(n_clustered))
    if not is_numbered or skipped.null_count < len(skipped):
        return f"'row' has not the numbers from 0 to {n_images - 1} in order"
    if not all(_are_hashes(chunk) for chunk in table["hash"].chunks):
        return "'hash' has values that are no hashes"
    if not _in_range(table["bytes"], 0, _LARGEST_FILE):
        return "'bytes' has values that are no sizes"
    return None


_CHECKS: dict[str, Callable[[pa.Table, int, int], str | None]] = {
    "assignments": _wrong_assignments,
    "clusters": _wrong_clusters,
    "images": _wrong_images,
}


def _in_range(numbers: pa.ChunkedArray | pa.Array, low: float, high: float) -> bool:
    """Return whether all numbers that are known are in a range."""
    is_chunked = isinstance(numbers, pa.ChunkedArray)
    values = numbers.to_numpy() if is_chunked else numbers.to_numpy(zero_copy_only=False)
    # Missing numbers are NaN here.
    return not np.any((values < low) | (values > high))


def _items(lists: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in lists.chunks:
        yield chunk.values


def _has_zero(texts: pa.ChunkedArray) -> bool:
    return not all(_bytes_of(chunk)[0].all() for chunk in texts.chunks)


def _are_hashes(texts: pa.Array) -> bool:
    characters, lengths = _bytes_of(texts)
    shortest, longest = _HASH_LENGTHS
    n_right = np.count_nonzero((lengths >= shortest) & (lengths <= longest))
    return bool(_IS_HEX[characters].all()) and n_right == len(texts) - texts.null_count


def _bytes_of(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return the bytes of all texts in one array, and the length of each text."""
    _, offsets, characters = texts.buffers()
    if not len(texts) or characters is None:
        return np.empty(0, np.uint8), np.zeros(len(texts), np.int32)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(characters, np.uint8)[ends[0] : ends[-1]], np.diff(ends)
