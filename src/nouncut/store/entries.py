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
    """A set of vectors of one kind and length.

    Examples
    --------
    >>> from nouncut.store.entries import Space
    >>> Space(1, "clip", "float16", dim=512).dtype
    'float16'
    """

    id: int
    name: str
    dtype: str
    dim: int


class Shard(NamedTuple):
    """A file of vectors; rows beyond `n_rows` are leftovers of an append that did not end.

    Examples
    --------
    >>> from nouncut.store.entries import Shard
    >>> Shard(7, space=1, n_rows=100, used=0.0).n_rows
    100
    """

    id: int
    space: int
    n_rows: int
    used: float


class Entry(NamedTuple):
    """Where a vector lies.

    Examples
    --------
    >>> from nouncut.store.entries import Entry
    >>> Entry(shard=7, row=99, checksum=558161692).row
    99
    """

    shard: int
    row: int
    checksum: int


def find_space(db: sqlite3.Connection, name: str) -> Space | None:
    """Return a space, or None where there is none of that name.

    Parameters
    ----------
    db : sqlite3.Connection
        The index.
    name : str
        The space's name.

    Returns
    -------
    Space or None
        The space.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         entries.find_space(db, "clip").dim
    512
    """
    found = db.execute("SELECT id, name, dtype, dim FROM space WHERE name = ?", (name,)).fetchone()
    return None if found is None else Space(*found)


def add_space(db: sqlite3.Connection, name: str, dtype: str, dim: int) -> Space:
    """Add a space that is not there yet.

    Parameters
    ----------
    db : sqlite3.Connection
        The index, open for writing.
    name, dtype : str
        The space's name and how its vectors are stored.
    dim : int
        The length of its vectors.

    Returns
    -------
    Space
        The space.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         space
    Space(id=1, name='clip', dtype='float32', dim=512)
    """
    cursor = db.execute("INSERT INTO space (name, dtype, dim) VALUES (?, ?, ?)", (name, dtype, dim))
    return Space(int(cursor.lastrowid or 0), name, dtype, dim)


def newest_shard(db: sqlite3.Connection, space: int) -> Shard | None:
    """Return the shard that the space's next rows go to, if there is any.

    Parameters
    ----------
    db : sqlite3.Connection
        The index.
    space : int
        The space's number.

    Returns
    -------
    Shard or None
        The shard.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         print(entries.newest_shard(db, space.id))
    None
    """
    found = db.execute(
        "SELECT id, space, n_rows, used FROM shard WHERE space = ? ORDER BY id DESC LIMIT 1",
        (space,),
    ).fetchone()
    return None if found is None else Shard(*found)


def add_shard(db: sqlite3.Connection, space: int) -> Shard:
    """Add an empty shard.

    Parameters
    ----------
    db : sqlite3.Connection
        The index, open for writing.
    space : int
        The space's number.

    Returns
    -------
    Shard
        The shard.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         entries.add_shard(db, space.id).n_rows
    0
    """
    now = time.time()
    cursor = db.execute("INSERT INTO shard (space, n_rows, used) VALUES (?, 0, ?)", (space, now))
    return Shard(int(cursor.lastrowid or 0), space, 0, now)


def add_entries(
    db: sqlite3.Connection, shard: Shard, keys: Sequence[str], checksums: Iterable[int]
) -> None:
    """Note the keys of rows that were written at the end of a shard.

    Parameters
    ----------
    db : sqlite3.Connection
        The index, open for writing.
    shard : Shard
        The shard as it was before.
    keys : sequence of str
        One per row.
    checksums : iterable of int
        One per row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         entries.add_entries(db, entries.add_shard(db, space.id), ["cat", "dog"], [7, 8])
    ...         entries.newest_shard(db, space.id).n_rows
    2
    """
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
    """Return where vectors lie.

    Parameters
    ----------
    db : sqlite3.Connection
        The index.
    space : int
        The space's number.
    keys : iterable of str
        The vectors' keys.

    Returns
    -------
    dict
        An entry for every key that is stored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store import entries
    >>> from nouncut.store import index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.create_index(Path(folder))
    ...     with index.transaction(Path(folder), write=True) as db:
    ...         space = entries.add_space(db, "clip", "float32", dim=512)
    ...         entries.add_entries(db, entries.add_shard(db, space.id), ["cat", "dog"], [7, 8])
    ...         entries.locate(db, space.id, ["dog", "cow"])
    {'dog': Entry(shard=1, row=1, checksum=8)}
    """
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
    """Note that shards were read, unless that was noted within the hour.

    Parameters
    ----------
    root : Path
        The store's folder. Where it cannot be written to, nothing is noted.
    shards : iterable of int
        The shards' numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.store.entries import note_use
    >>> from nouncut.store.index import create_index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     create_index(Path(folder))
    ...     note_use(Path(folder), [1, 2])
    """
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
