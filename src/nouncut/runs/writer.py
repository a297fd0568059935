"""Writes a run completely or not at all.

All new files are first written beside their final paths. When all are on the disk, the manifest
changes to "running", the files are renamed, and the manifest changes to "complete". A writer that
dies leaves the old run, or an unfinished one that says so; if only renaming was left to do, the
next writer does it first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from nouncut import __version__
from nouncut.compute.files import (
    NEW_SUFFIX,
    AnyPath,
    commit_file,
    new_file,
    remove_temporary,
    sync_folder,
    temporary_path,
)
from nouncut.errors import InputError, OutputError, printable_path
from nouncut.runs.checksums import file_checksum, is_link, open_inside
from nouncut.runs.directory import (
    ARRAY_SUFFIX,
    ARRAYS,
    FEATURE_PARTS,
    FORMAT,
    LOCK,
    MANIFEST,
    REPORT,
    SAMPLE,
    TABLE_SUFFIX,
    DamagedRunError,
    array_path,
    explained,
    feature_paths,
    foreign_names,
    table_path,
    table_paths,
)
from nouncut.runs.edit_log import EDITS, LoggedEdit, encode_log, set_aside_log
from nouncut.runs.manifest import encode_manifest, parse_manifest, read_manifest
from nouncut.runs.manifest_fields import FILES
from nouncut.runs.renames import set_aside_names
from nouncut.runs.run import Run, open_run
from nouncut.runs.tables import SCHEMAS, write_table

_COMPLETE = "complete-manifest.json"
_BYTES_AT_ONCE = 16 * 2**20


@dataclass(frozen=True)
class RunContents:
    """The manifest, tables and arrays of a finished run, and edits of its groups."""

    manifest: dict[str, Any]
    assignments: pa.Table
    clusters: pa.Table
    images: pa.Table
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    # None leaves those in the directory aside.
    edits: Sequence[LoggedEdit] | None = None
    # Files of large tables and of `FEATURE_PARTS`, in order; the tables above are then empty.
    parts: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    # Some images of a large run, with all arrays; written to the folder `SAMPLE`.
    sample: RunContents | None = None


class RunWriter:
    """Writes a run to its directory, which is locked while the writer is open."""

    def __init__(self, directory: AnyPath) -> None:
        self.directory = Path(directory)
        self._lock = FileLock(self.directory / LOCK, timeout=0, thread_local=False)
        self._started = _now()

    def __enter__(self) -> Self:
        with explained(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            _check_free(self.directory)
            self._take_lock()
            try:
                self._finish_renaming()
                self._remove_leftovers()
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            with explained(self.directory):
                self._finish_renaming()
                self._remove_leftovers()
        finally:
            self._lock.release()

    def start(self, manifest: dict[str, Any]) -> None:
        """Mark the directory as a run in progress, unless it holds a finished one."""
        if not self._has_complete_run():
            with explained(self.directory):
                self._write_manifest(MANIFEST, self._head(manifest) | {"status": "running"})
                commit_file(self.directory / MANIFEST)
                sync_folder(self.directory)

    def finish(self, contents: RunContents) -> Run:
        """Write the run, replacing an earlier one."""
        arrays = {array_path(self.directory, n): array for n, array in contents.arrays.items()}
        sample = None if contents.sample is None else self._write_sample(contents.sample)
        whole = [name for name in SCHEMAS if name not in contents.parts]
        tables = {name: _conform(getattr(contents, name), SCHEMAS[name]) for name in whole}
        with explained(self.directory):
            self._remove_leftovers()
            (self.directory / ARRAYS).mkdir(exist_ok=True)
            for path, array in arrays.items():
                write_array(path, array)
            for name, table in tables.items():
                write_table(self.directory, name, table)
            parts = self._copy_parts(contents.parts)
            written = [*arrays, *(table_path(self.directory, name) for name in tables), *parts]
            manifest = self._described(contents) | {FILES: self._checksums(written)}
            manifest |= {"sample": sample} if sample else {}
            edits = [] if contents.edits is None else [self.directory / EDITS]
            for path in edits:
                with new_file(path) as file:
                    file.write(encode_log(manifest, contents.edits or ()))
            # Written early, so that only renaming is left when the old run is given up.
            self._write_manifest(_COMPLETE, manifest)
            self._write_manifest(MANIFEST, manifest | {"status": "running"})
            self._sync()
            commit_file(self.directory / MANIFEST)
            self._sync()
            for path in (*written, *edits):
                commit_file(path)
            self._complete(manifest, temporary_path(self.directory / _COMPLETE))
        return open_run(self.directory)

    def _write_sample(self, contents: RunContents) -> dict[str, Any]:
        """Write the run of some images first: a manifest that names it follows."""
        with RunWriter(self.directory / SAMPLE) as writer:
            manifest = writer.finish(contents).manifest
        return {name: manifest[name] for name in ("id", "n_images")}

    def _copy_parts(self, parts: Mapping[str, Sequence[Path]]) -> list[Path]:
        """Copy the files of large tables beside their final paths, which are returned."""
        copied = []
        for name, files in parts.items():
            (self.directory / name).mkdir(exist_ok=True)
            for file, path in zip(files, self._part_paths(name, len(files)), strict=True):
                with file.open("rb") as source, new_file(path) as target:
                    shutil.copyfileobj(source, target, _BYTES_AT_ONCE)
                copied.append(path)
        return copied

    def _finish_renaming(self) -> None:
        """Rename the rest of a killed writer's files if all of them were on the disk."""
        for complete in self.directory.glob(f"{_COMPLETE}.*{NEW_SUFFIX}"):
            manifest = self._read_complete(complete)
            running = self._manifest()
            # Another id is that of the run before, or of a run whose files were being written.
            if running.get("status") != "running" or running.get("id") != manifest.get("id"):
                continue
            suffix = complete.name.removeprefix(_COMPLETE)
            arrays = [array_path(self.directory, name) for name in manifest.get("arrays") or ()]
            n_parts = manifest.get("parts") or {}
            tables = [
                path
                for name in (*SCHEMAS, *FEATURE_PARTS)
                for path in self._part_paths(name, n_parts.get(name, 0))
            ]
            for path in (*arrays, *tables, self.directory / EDITS):
                with suppress(FileNotFoundError):
                    os.replace(path.with_name(path.name + suffix), path)
            self._complete(manifest, complete)

    def _complete(self, manifest: dict[str, Any], complete: Path) -> None:
        """Remove what an earlier run left, and say that the run is complete."""
        arrays = {array_path(self.directory, name) for name in manifest.get("arrays") or ()}
        stale = set((self.directory / ARRAYS).glob(f"*{ARRAY_SUFFIX}")) - arrays
        for path in (*stale, *self._stale_parts(manifest), self.directory / REPORT):
            path.unlink(missing_ok=True)
        if "sample" not in manifest and not is_link(self.directory / SAMPLE):
            shutil.rmtree(self.directory / SAMPLE, ignore_errors=True)
        set_aside_names(self.directory, manifest)
        set_aside_log(self.directory, manifest)
        self._sync()
        os.replace(complete, self.directory / MANIFEST)
        self._sync()

    def _stale_parts(self, manifest: dict[str, Any]) -> Iterator[Path]:
        """Yield the files of tables, and of features in parts, that an earlier run left."""
        n_parts = manifest.get("parts") or {}
        for name in (*SCHEMAS, *FEATURE_PARTS):
            used = set(self._part_paths(name, n_parts.get(name, 0)))
            found = {table_path(self.directory, name)} if name in SCHEMAS else set()
            suffix = TABLE_SUFFIX if name in SCHEMAS else ARRAY_SUFFIX
            found |= set((self.directory / name).glob(f"part-*{suffix}"))
            yield from found - used

    def _part_paths(self, name: str, n_parts: int) -> list[Path]:
        paths = table_paths if name in SCHEMAS else feature_paths
        return paths(self.directory, name, n_parts)

    def _described(self, contents: RunContents) -> dict[str, Any]:
        n_images, n_files = (
            sum(map(_count_rows, contents.parts[name]))
            if name in contents.parts
            else getattr(contents, name).num_rows
            for name in ("assignments", "images")
        )
        n_parts = {name: len(files) for name, files in contents.parts.items()}
        return {
            **self._head(contents.manifest),
            "status": "complete",
            "finished": _now(),
            "n_images": n_images,
            "n_clusters": contents.clusters.num_rows,
            "n_skipped": n_files - n_images,
            "arrays": sorted(contents.arrays),
            **({"parts": n_parts} if n_parts else {}),
        }

    def _head(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return a manifest with the fields that every run has."""
        own = {"format": FORMAT, "nouncut": __version__, "id": uuid4().hex}
        return {**own, "started": self._started, **manifest, **own}

    def _checksums(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return the checksums of new files."""
        found = {}
        for path in paths:
            with temporary_path(path).open("rb") as file:
                found[path.relative_to(self.directory).as_posix()] = file_checksum(file)
        return found

    def _read_complete(self, path: Path) -> dict[str, Any]:
        """Read a manifest that waits for its files; an empty one if it is not whole."""
        try:
            with open_inside(path, self.directory) as file:
                return parse_manifest(file, self.directory)
        except InputError:
            return {}

    def _has_complete_run(self) -> bool:
        return self._manifest().get("status") == "complete"

    def _manifest(self) -> dict[str, Any]:
        """Return the manifest of the run that is there; an empty one if it is damaged."""
        try:
            has_manifest = (self.directory / MANIFEST).exists()
            return read_manifest(self.directory) if has_manifest else {}
        except DamagedRunError:
            return {}

    def _write_manifest(self, name: str, manifest: dict[str, Any]) -> None:
        with new_file(self.directory / name) as file:
            file.write(encode_manifest(manifest))

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout as error:
            raise OutputError(
                f"Another process is writing a run to {printable_path(self.directory)}. Wait for "
                "it to end, or choose another folder with `output`."
            ) from error

    def _remove_leftovers(self) -> None:
        remove_temporary(self.directory)
        for folder in (ARRAYS, *SCHEMAS, *FEATURE_PARTS):
            remove_temporary(self.directory / folder)

    def _sync(self) -> None:
        for folder in (ARRAYS, *SCHEMAS, *FEATURE_PARTS):
            if (self.directory / folder).is_dir():
                sync_folder(self.directory / folder)
        sync_folder(self.directory)


def _check_free(directory: Path) -> None:
    """Refuse a directory with other files, or whose arrays folder is a link."""
    elsewhere = "Choose another folder with `output`."
    others = foreign_names(directory)
    if MANIFEST in others:
        try:
            with suppress(DamagedRunError):  # the new run replaces it
                read_manifest(directory)
        except InputError as error:
            raise OutputError(f"No run can be written there: {error} {elsewhere}") from error
    elif others:
        raise OutputError(
            f"{printable_path(directory)} holds other files ({printable_path(min(others))}, ...) "
            f"but no run. {elsewhere}"
        )
    # Files of an old run are deleted, and the lock is emptied; a link might lead to other files.
    for path in (
        directory / name for name in (MANIFEST, ARRAYS, LOCK, SAMPLE, *SCHEMAS, *FEATURE_PARTS)
    ):
        if is_link(path) or (path.exists() and not (path.is_dir() or path.is_file())):
            raise OutputError(f"{printable_path(path)} is a link or a device. {elsewhere}")


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with its columns cast to the types of the schema."""
    for column in schema:
        position = table.schema.get_field_index(column.name)
        if position < 0:
            raise ValueError(f"The table has no column {column.name!r}; it needs {schema.names}.")
        values = table.column(position).cast(column.type)
        table = table.set_column(position, column, values)
    return table


def _count_rows(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file as `new_file` does, in pieces: the array may be memory-mapped."""
    if array.dtype.hasobject:
        raise ValueError(f"{path.stem!r} holds Python objects, and arrays are never pickled.")
    flat = np.asarray(array, order="C").reshape(-1)
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    step = max(1, _BYTES_AT_ONCE // max(1, array.itemsize))
    with new_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        # np.save hides the errno of a full disk.
        for start in range(0, len(flat), step):
            file.write(flat[start : start + step].tobytes())
