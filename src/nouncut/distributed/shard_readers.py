"""The images of a shard, one after the other: files, members of a tar, rows of a parquet file.

Nothing in these files is trusted: names are only names, and sizes are limited before anything is
read.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nouncut.distributed.sources import explained_access, file_system, is_local
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import describe_error
from nouncut.images.formats import reason_by_suffix
from nouncut.models.precomputed import PATH_NAMES

FEATURES = "features, not images"
# As for image files that are read as a whole.
MAX_IMAGE_BYTES = 250_000_000
# Longer reads are those of a header that pretends to be long.
_MOST_AT_ONCE = MAX_IMAGE_BYTES + tarfile.BLOCKSIZE
_CACHE_BYTES = 2**22
_IMAGE_NAMES = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "photo", "bytes", "data")
_NAMES_OF_ROWS = (*PATH_NAMES, "key", "__key__", "url")
_SHOWN_COLUMNS = 12
_TOO_LARGE = f"a file of more than {MAX_IMAGE_BYTES / 1e6:.0f} MB; make the image smaller"

Shard = dict[str, Any]


class Item(NamedTuple):
    """An image that is not opened yet: `read` returns its content, or it is the file `path`."""

    path: str
    size: int
    read: Callable[[], bytes] | None = None
    # Why it cannot be used, if that is known already.
    reason: str = ""


class DamageError(Exception):
    """A tar or parquet file that cannot be read further, and why."""


class AccessError(Exception):
    """A file that cannot be reached, and why; another attempt may succeed."""


class FileWindow:
    """A part of a file; limits single reads, and remembers whether the storage failed."""

    closed = False

    def __init__(self, file: Any, start: int = 0, stop: int | None = None) -> None:
        self._file, self._start, self._stop = file, start, stop
        self.failure: Exception | None = None
        self._file.seek(start)

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as other files do."""
        room = None if self._stop is None else max(0, self._stop - self._file.tell())
        wanted = room if size is None or size < 0 else size
        if room is not None and wanted is not None:
            wanted = min(room, wanted)
        if wanted is None or wanted > _MOST_AT_ONCE:
            raise DamageError("it wants to be read at once, and is too large")
        try:
            content: bytes = self._file.read(wanted)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise
        except Exception as error:
            self.failure = error
            raise
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Change the position as other files do."""
        if whence == os.SEEK_END and self._stop is not None:
            offset, whence = self._stop - self._start + offset, os.SEEK_SET
        if whence == os.SEEK_SET:
            offset += self._start
        return int(self._file.seek(offset, whence)) - self._start

    def tell(self) -> int:
        """Return the position."""
        return int(self._file.tell()) - self._start

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Leave the file to whoever opened it."""

    def flush(self) -> None:
        """Do nothing."""


def shard_items(shard: Shard, options: Options) -> Iterator[Item]:
    """Yield the images of a shard."""
    if shard["kind"] == "files":
        for path, size, _ in shard["files"]:
            yield _file_item(path, size, options)
        return
    try:
        system, path = file_system(shard["path"], options)
        opened = system.open(path, "rb", block_size=_CACHE_BYTES)
    except Exception as error:  # every kind of storage has its own errors
        raise AccessError(describe_access(error)) from error
    with opened:
        window = FileWindow(opened)
        read = _tar_items if shard["kind"] == "tar" else _parquet_items
        try:
            yield from read(window, shard)
        except Exception as error:
            if window.failure is not None:
                raise AccessError(describe_access(window.failure)) from error
            raise


def describe_access(error: Exception) -> str:
    """Return why a file cannot be read, for the list of skipped ones."""
    if isinstance(error, FileNotFoundError):
        return "it is gone since the source was listed"
    if isinstance(error, PermissionError):
        return f"access was refused ({describe_error(error)})"
    return f"cannot be read ({describe_error(error)})"


def _file_item(path: str, size: int, options: Options) -> Item:
    system, inner = file_system(path, options)
    if is_local(system):
        return Item(path, size)
    if size > MAX_IMAGE_BYTES:
        return Item(path, size, reason=_TOO_LARGE)
    # The object may have grown since it was listed.
    return Item(path, size, partial(system.cat_file, inner, start=0, end=MAX_IMAGE_BYTES))


def tar_index(storage: Storage, number: int, options: Options) -> dict[str, Any]:
    """Find where the members begin that are the first ones of the parts of a large tar."""
    shard = storage.read_json(f"listing/{number:05d}.json")
    size, n_parts = shard["size"], shard["n_parts"]
    starts, error = [0], ""
    try:
        system, path = file_system(shard["path"], options)
        with system.open(path, "rb", block_size=_CACHE_BYTES) as opened:
            for member in _members(FileWindow(opened)):
                while len(starts) < n_parts and member.offset >= len(starts) * size / n_parts:
                    starts.append(member.offset)
    except DamageError:
        pass  # Whoever reads the part with the damage says so.
    except Exception as problem:  # every kind of storage has its own errors
        error = describe_access(problem)
    return {"starts": starts + [size] * (n_parts + 1 - len(starts)), "error": error}


def _tar_items(window: FileWindow, shard: Shard) -> Iterator[Item]:
    if "start" in shard:
        window = FileWindow(window, shard["start"], shard["stop"])
        if shard["start"] == shard["stop"]:
            return
    file: Any = window
    if not shard["path"].lower().endswith(".tar"):
        file = FileWindow(gzip.GzipFile(fileobj=window))
    for member in _members(file):
        name = f"{shard['path']}#{member.name}"
        suffix = os.path.splitext(member.name)[1].lower()
        # Texts and labels beside the images are no mistake.
        if not member.isreg() or (suffix and reason_by_suffix(suffix)):
            continue
        if member.size > MAX_IMAGE_BYTES:
            yield Item(name, member.size, reason=_TOO_LARGE)
            continue
        content = _member_content(file, member)
        yield Item(name, member.size, partial(bytes, content))


def _members(file: Any) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar; raise a `DamageError` where it is damaged."""
    try:
        with tarfile.TarFile(fileobj=file) as tar:
            while (member := tar.next()) is not None:
                # All members would be kept.
                tar.members.clear()  # type: ignore[attr-defined]
                yield member
        # A damaged header ends a tar as well as two empty blocks do.
        file.seek(tar.offset)
        if any(file.read(tarfile.BLOCKSIZE)):
            raise DamageError(f"the tar is damaged {tar.offset:,} bytes after its start")
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamageError(f"the tar is damaged ({describe_error(error)})") from error


def _member_content(file: Any, member: tarfile.TarInfo) -> bytes:
    if member.issparse():
        raise DamageError("the tar has sparse members; pack it again without them")
    file.seek(member.offset_data)
    content: bytes = file.read(member.size)
    if len(content) < member.size:
        raise DamageError("the tar ends too early")
    return content


def describe_table(path: str, options: Options) -> str:
    """Return why a parquet file is no source of images; empty if it is, or cannot be read."""
    with explained_access(path):
        system, inner = file_system(path, options)
        try:
            with system.open(inner, "rb") as opened, pq.ParquetFile(opened) as parquet:
                schema = parquet.schema_arrow
        except (pa.ArrowException, ValueError):
            return ""  # The task that reads it says what is wrong.
        except OSError as error:
            if error.errno is not None:
                raise
            return ""
    try:
        image_columns(schema)
    except DamageError as error:
        types = [field.type for field in schema]
        has_lists = any(pa.types.is_list(t) or pa.types.is_fixed_size_list(t) for t in types)
        return FEATURES if has_lists else str(error)
    return ""


def image_columns(schema: pa.Schema) -> tuple[str, str | None]:
    """Return the column with the content of images, and the one with their names, if any."""
    found: dict[str, tuple[str, str | None]] = {}
    for field in schema:
        if _is_binary(field.type):
            found[field.name] = (field.name, None)
        elif pa.types.is_struct(field.type):
            inside = {child.name: child.type for child in field.type}
            if "bytes" in inside and _is_binary(inside["bytes"]):
                has_path = "path" in inside and _is_text(inside["path"])
                name = f"{field.name}.path" if has_path else None
                found[field.name] = (f"{field.name}.bytes", name)
    named = [n for known in _IMAGE_NAMES for n in found if n.lower().split(".")[0] == known]
    if not named and len(found) != 1:
        columns = ", ".join(f"{f.name} ({f.type})" for f in list(schema)[:_SHOWN_COLUMNS])
        raise DamageError(
            f"no column is clearly that of the images among {columns}: name it 'image', with the "
            "bytes of image files"
        )
    content, name = found[named[0] if named else next(iter(found))]
    texts = [n for n in _NAMES_OF_ROWS if n in schema.names and _is_text(schema.field(n).type)]
    return content, name or (texts[0] if texts else None)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parquet_items(window: FileWindow, shard: Shard) -> Iterator[Item]:
    try:
        with pq.ParquetFile(
            window, buffer_size=_CACHE_BYTES, pre_buffer=False, page_checksum_verification=True
        ) as parquet:
            content, name = image_columns(parquet.schema_arrow)
            for row, batch in _rows(parquet, [content, *([name] if name else [])], shard):
                value, text = _value(batch, content), _value(batch, name) if name else None
                path = f"{shard['path']}#{row}" + (f"/{text}" if text else "")
                if value is None:
                    yield Item(path, 0, reason="the row has no image")
                elif len(value) > MAX_IMAGE_BYTES:
                    yield Item(path, len(value), reason=_TOO_LARGE)
                else:
                    yield Item(path, len(value), partial(bytes, value))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamageError(f"the parquet file is damaged ({describe_error(error)})") from error


def _rows(
    parquet: pq.ParquetFile, columns: list[str], shard: Shard
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a part of the file one by one: a few bytes may stand for large values."""
    part, n_parts, total = shard["part"], shard["n_parts"], parquet.metadata.num_rows
    start, stop = total * part // n_parts, total * (part + 1) // n_parts
    begin = 0
    for group in range(parquet.num_row_groups):
        end = begin + parquet.metadata.row_group(group).num_rows
        if begin < stop and end > start:
            batches = parquet.iter_batches(
                1, row_groups=[group], columns=columns, use_threads=False
            )
            for row, batch in enumerate(batches, begin):
                if row >= stop:
                    return
                if row >= start:
                    yield row, batch
        begin = end


def _value(batch: pa.RecordBatch, column: str) -> Any:
    if column in batch.schema.names:
        return batch.column(column)[0].as_py()
    outer, _, inner = column.rpartition(".")
    return (batch.column(outer)[0].as_py() or {}).get(inner)
