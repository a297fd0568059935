"""Features of nouncut 0.1.0: files of rows ("shards") with an index, moved into the database."""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from nouncut.errors import OutputError
from nouncut.store.database import (
    USED,
    DamagedError,
    Space,
    add_space,
    checked_space,
    explained,
    find_space,
    insert_rows,
    is_damage,
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
    """Move all rows into the database and delete the old files; damaged ones are left alone."""
    if not shard_files(root):
        return
    try:
        with _checked_index(root) as (old, shards):
            for shard, used, space in shards:
                _migrate_shard(root, old, shard, used, space)
        remove_shards(root)
    except OutputError as error:
        _log.warning("Features of nouncut 0.1.0 are not used: %s", error)


def are_shards_damaged(root: Path) -> bool:
    """Tell whether there is an index of nouncut 0.1.0 that cannot be used."""
    if not shard_files(root):
        return False
    try:
        with _checked_index(root):
            return False
    except OutputError as error:
        return is_damage(error.__cause__)


@contextmanager
def _checked_index(
    root: Path,
) -> Iterator[tuple[sqlite3.Connection, list[tuple[int, float, Space]]]]:
    """Open the index, and read the shards with the dates of their last use and their spaces."""
    address = f"{(root / 'index.sqlite').absolute().as_uri()}?mode=rw"
    with explained(root), closing(sqlite3.connect(address, uri=True, timeout=60)) as old:
        # Checksums of rows do not cover their keys: the index must be beyond doubt.
        (verdict,) = old.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise DamagedError(verdict)
        found = old.execute(
            f"SELECT shard.id, {USED}, space.id, name, dtype, dim FROM shard"
            " JOIN space ON space.id = shard.space ORDER BY shard.id"
        ).fetchall()
        yield old, [(shard, used, checked_space(*space)) for shard, used, *space in found]


def _migrate_shard(
    root: Path, old: sqlite3.Connection, shard: int, used: float, old_space: Space
) -> None:
    path = root / "shards" / f"{shard:08d}.rows"
    # The transaction makes other processes wait. They find no file afterwards.
    with transaction(root) as db:
        space = find_space(db, old_space.name) or add_space(db, *old_space[1:])
        if path.exists() and space[1:] == old_space[1:]:
            insert_rows(db, space, _intact_rows(old, shard, path, old_space), used)
    path.unlink(missing_ok=True)


def _intact_rows(
    old: sqlite3.Connection, shard: int, path: Path, space: Space
) -> Iterator[tuple[str, bytes]]:
    content, n_bytes = path.read_bytes(), space.row_bytes
    entries = old.execute(
        "SELECT key, row, checksum FROM entry WHERE shard = ? AND space = ?"
        " AND typeof(key) = 'text' AND typeof(row) = 'integer' ORDER BY row",
        (shard, space.id),
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
