"""The files of a finished run, checked before anything in them is used."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.runs.arrays import (
    array_names,
    check_headers,
    known_sizes,
    map_array,
    map_features,
)
from nouncut.runs.directory import array_path, damaged, feature_paths, table_paths
from nouncut.runs.manifest_fields import FILES
from nouncut.runs.table_values import check_values
from nouncut.runs.tables import SCHEMAS, check_footer, count_rows, read_part, read_table


class RunFiles:
    """Reads the tables and arrays that the manifest of a finished run describes."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        self.directory = directory
        self.n_images, self.n_clusters = manifest["n_images"], manifest["n_clusters"]
        self.array_names = array_names(directory, manifest.get("arrays"))
        self._n_rows = {
            "assignments": self.n_images,
            "clusters": self.n_clusters,
            "images": self.n_images + manifest.get("n_skipped", 0),
        }
        # Only large tables have parts.
        self._n_parts: dict[str, int] = manifest.get("parts") or {}
        # Runs of version 0.1.0 have no checksums.
        self._checksums: dict[str, str] | None = manifest.get(FILES)
        self._arrays: dict[str, NDArray[Any]] = {}
        self._known_extents: dict[str, list[tuple[Path, int, int]]] = {}

    @property
    def has_checksums(self) -> bool:
        """Whether files can be compared with checksums."""
        return self._checksums is not None

    def check(self) -> None:
        """Compare the tables' footers and the arrays' headers with each other."""
        for name in SCHEMAS:
            check_footer(self.directory, name, self._n_rows[name], self._n_parts.get(name, 0))
        _ = self._sizes

    def table(self, name: str) -> pa.Table:
        """Read a table."""
        n_parts = self._n_parts.get(name, 0)
        table = read_table(self.directory, name, self._checksum, n_parts)
        check_values(table, name, self.directory, self.n_images, self.n_clusters)
        return table

    def parts(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a table from `start` to `stop`, one file at a time."""
        stop = self._n_rows[name] if stop is None else stop
        for path, first, last in self._extents(name):
            if first < stop and start < last:
                part = self._part(name, path, first)
                begin, end = max(start, first), min(stop, last)
                yield part.slice(begin - first, end - begin)

    def take(self, name: str, rows: NDArray[np.intp]) -> pa.Table:
        """Read some rows of a table, only from the files that have them."""
        order = np.argsort(rows, kind="stable")
        ascending, found = rows[order], [SCHEMAS[name].empty_table()]
        for path, first, last in self._extents(name):
            begin, end = np.searchsorted(ascending, [first, last])
            if begin < end:
                found.append(self._part(name, path, first).take(ascending[begin:end] - first))
        return pa.concat_tables(found).take(np.argsort(order))

    def _part(self, name: str, path: Path, first: int) -> pa.Table:
        table = read_part(path, self.directory, self._checksum(path))
        check_values(table, name, self.directory, self.n_images, self.n_clusters, first)
        return table

    def _extents(self, name: str) -> list[tuple[Path, int, int]]:
        """Return the files of a table, and their first and last rows."""
        if name not in self._known_extents:
            paths = table_paths(self.directory, name, self._n_parts.get(name, 0))
            ends = np.cumsum([count_rows(path, self.directory) for path in paths]).tolist()
            self._known_extents[name] = list(zip(paths, [0, *ends], ends, strict=False))
        return self._known_extents[name]

    @property
    def is_large(self) -> bool:
        """Whether the tables have parts."""
        return bool(self._n_parts)

    def features(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the features of all images of a large run, mapped into memory, part by part."""
        paths = feature_paths(self.directory, name, self._n_parts.get(name, 0))
        lengths = [last - first for _, first, last in self._extents("assignments")]
        for path, length in zip(paths, lengths, strict=True):
            yield map_features(self.directory, path, length, self._checksum(path))

    def check_features(self, name: str) -> None:
        """Raise an `InputError` if features of all images are damaged."""
        for _ in self.features(name) if self.has_features(name) else ():
            pass

    def has_features(self, name: str) -> bool:
        """Return whether a large run has features of all images."""
        return bool(self._n_parts.get(name))

    def array(self, name: str) -> NDArray[Any]:
        """Map an array into memory; its values are checked the first time."""
        if name not in self._arrays:
            checksum = self._checksum(array_path(self.directory, name))
            self._arrays[name] = map_array(self.directory, name, self._sizes, checksum)
        return self._arrays[name]

    def check_table(self, name: str) -> None:
        """Raise an `InputError` if a table is damaged."""
        check_footer(self.directory, name, self._n_rows[name], self._n_parts.get(name, 0))
        self.table(name)

    def check_array(self, name: str) -> None:
        """Raise an `InputError` if an array is damaged, whatever the other arrays are."""
        checksum = self._checksum(array_path(self.directory, name))
        map_array(self.directory, name, known_sizes(self.n_images, self.n_clusters), checksum)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        sizes = known_sizes(self.n_images, self.n_clusters)
        return check_headers(self.directory, self.array_names, sizes)

    def _checksum(self, path: Path) -> str | None:
        if self._checksums is None:
            return None
        name = path.relative_to(self.directory).as_posix()
        if name not in self._checksums:
            raise damaged(path, "the manifest does not have its checksum")
        return self._checksums[name]
