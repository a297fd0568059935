"""What the index says: spaces, their shards, and which vector lies in which row."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nouncut.errors import OutputError
from nouncut.store.index import transaction

# SQLite before 3.32 takes 999 parameters per statement.
_KEYS_PER_QUERY = 900
# Writing down every use would make reading as slow as writing.
_USE_RESOLUTION_SECONDS = 3600.0


class Space(NamedTuple):
    """A set of vectors of one kind and length."""

    id: int
    name: str
    dtype: str
    dim: int


class Shard(NamedTuple):
    """A file of vectors; rows beyond `n_rows` are leftovers of an append that did not end."""

    id: int
    space: int
    n_rows: int
    used: float


class Entry(NamedTuple):
    """Where a vector lies."""

    shard: int
    row: int
    checksum: int


def find_space(db: sqlite3.Connection, name: str) -> Space | None:
    """Return a space, or None where there is none of that name."""
    found = db.execute("SELECT id, name, dtype, dim FROM space WHERE name = ?", (name,)).fetchone()
    return None if found is None else Space(*found)


def add_space(db: sqlite3.Connection, name: str, dtype: str, dim: int) -> Space:
    """Add a space that is not there yet."""
    cursor = db.execute("INSERT INTO space (name, dtype, dim) VALUES (?, ?, ?)", (name, dtype, dim))
    return Space(int(cursor.lastrowid or 0), name, dtype, dim)


def newest_shard(db: sqlite3.Connection, space: int) -> Shard | None:
    """Return the shard that the space's next rows go to, if there is any."""
    found = db.execute(
        "SELECT id, space, n_rows, used FROM shard WHERE space = ? ORDER BY id DESC LIMIT 1",
        (space,),
    ).fetchone()
    return None if found is None else Shard(*found)


def add_shard(db: sqlite3.Connection, space: int) -> Shard:
    """Add an empty shard."""
    now = time.time()
    cursor = db.execute("INSERT INTO shard (space, n_rows, used) VALUES (?, 0, ?)", (space, now))
    return Shard(int(cursor.lastrowid or 0), space, 0, now)


def add_entries(
    db: sqlite3.Connection, shard: Shard, keys: Sequence[str], checksums: Iterable[int]
) -> None:
    """Note the keys of rows that were written at the end of a shard."""
    places = enumerate(zip(keys, checksums, strict=True), start=shard.n_rows)
    db.executemany(
        "INSERT OR REPLACE INTO entry (space, key, shard, row, checksum) VALUES (?, ?, ?, ?, ?)",
        ((shard.space, key, shard.id, row, checksum) for row, (key, checksum) in places),
    )
    db.execute(
        "UPDATE shard SET n_rows = ?, used = ? WHERE id = ?",
        (shard.n_rows + len(keys), time.time(), shard.id),
    )


def locate(db: sqlite3.Connection, space: int, keys: Iterable[str]) -> dict[str, Entry]:
    """Return where vectors lie."""
    wanted = list(dict.fromkeys(keys))
    found: dict[str, Entry] = {}
    for start in range(0, len(wanted), _KEYS_PER_QUERY):
        part = wanted[start : start + _KEYS_PER_QUERY]
        marks = ", ".join("?" * len(part))
        # Entries of shards that are gone count for nothing: see how the store is pruned.
        query = (
            "SELECT key, shard, row, checksum FROM entry JOIN shard ON shard.id = entry.shard"
            f" WHERE entry.space = ? AND key IN ({marks})"
        )
        for key, *place in db.execute(query, (space, *part)):
            found[key] = Entry(*place)
    return found


def note_use(root: Path, shards: Iterable[int]) -> None:
    """Note that shards were read, unless that was noted within the hour."""
    now = time.time()
    try:
        with transaction(root) as db:
            stale = {
                shard
                for shard, used in db.execute("SELECT id, used FROM shard")
                if used < now - _USE_RESOLUTION_SECONDS
            }.intersection(shards)
        if stale:
            with transaction(root, write=True, patience=1.0) as db:
                db.executemany(
                    "UPDATE shard SET used = ? WHERE id = ?", ((now, shard) for shard in stale)
                )
    except OutputError:
        # A date is not worth failing a read for.
        return
