"""Features of nouncut 0.1.0: files of rows ("shards") with an index, moved into the database."""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from nouncut.errors import OutputError
from nouncut.store.database import (
    DTYPES,
    add_space,
    explained,
    find_space,
    insert_rows,
    transaction,
)

_log = logging.getLogger(__name__)


def shard_files(root: Path) -> list[Path]:
    """Return the files of nouncut 0.1.0, the index last; nothing if another program wrote it."""
    index = root / "index.sqlite"
    if not index.exists():
        return []
    with index.open("rb") as file:
        # The application id in the header of an SQLite file.
        is_ours = file.read(72)[68:] == b"ncut"
    return [*(root / "shards").glob("*.rows"), index] if is_ours else []


def migrate_shards(root: Path) -> None:
    """Move all rows into the database and delete the old files; try again next time on errors."""
    if not shard_files(root):
        return
    try:
        address = f"{(root / 'index.sqlite').absolute().as_uri()}?mode=rw"
        with explained(root), closing(sqlite3.connect(address, uri=True, timeout=60)) as old:
            for shard in old.execute(
                "SELECT shard.id, name, dtype, dim, used FROM shard"
                " JOIN space ON space.id = shard.space ORDER BY shard.id"
            ).fetchall():
                _migrate_shard(root, old, *shard)
        remove_shards(root)
    except OutputError as error:
        _log.warning("Features of nouncut 0.1.0 are not used: %s", error)


def _migrate_shard(
    root: Path, old: sqlite3.Connection, shard: int, name: str, dtype: str, dim: int, used: float
) -> None:
    path = root / "shards" / f"{shard:08d}.rows"
    # The transaction makes other processes wait. They find no file afterwards.
    with transaction(root) as db:
        space = find_space(db, name) or add_space(db, name, dtype, dim)
        if path.exists() and space == (space.id, name, dtype, dim):
            rows = _intact_rows(old, shard, path, DTYPES[dtype].itemsize * dim)
            insert_rows(db, space, rows, used)
    path.unlink(missing_ok=True)


def _intact_rows(
    old: sqlite3.Connection, shard: int, path: Path, n_bytes: int
) -> Iterator[tuple[str, bytes]]:
    content = path.read_bytes()
    entries = old.execute(
        "SELECT key, row, checksum FROM entry WHERE shard = ? ORDER BY row", (shard,)
    )
    for key, row, checksum in entries:
        data = content[row * n_bytes : (row + 1) * n_bytes]
        if len(data) == n_bytes and zlib.crc32(data) == checksum:
            yield key, data


def remove_shards(root: Path) -> None:
    """Delete the files of nouncut 0.1.0."""
    for path in shard_files(root):
        # Windows keeps a file that is in use.
        with suppress(PermissionError, FileNotFoundError):
            path.unlink()
    with suppress(OSError):
        (root / "shards").rmdir()
