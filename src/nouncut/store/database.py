"""The SQLite file of the feature store: tables, transactions, and errors with a remedy.

It keeps SQLite's rollback journal. The write-ahead log fails on network drives, and a read-only
folder cannot be read with it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nouncut.compute.files import explained_writing
from nouncut.errors import OutputError, describe_error, printable_path

Key = TypeVar("Key", str, bytes)

DATABASE_NAME = "features.sqlite"
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
# SQLite before 3.32 takes 999 parameters per statement.
_KEYS_PER_QUERY = 900
# The date of last use is kept per block of consecutive rows: 8 MB of 512 float32.
ROWS_PER_BLOCK = 4096
REPAIR = (
    "Run `nouncut cache check --repair`, or FeatureStore.repair() in Python: damaged features are "
    "then encoded again."
)

# The statements are right, and no two rows have the same key: the file must be wrong.
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH")
# What SQLite says when its file is no longer there.
_GONE = ("SQLITE_CANTOPEN", "SQLITE_READONLY_DBMOVED", "SQLITE_IOERR")
_REMOVED = (
    "The feature store {root} was removed while it was in use ({words}). Start again: its features "
    "are then encoded again. Or "
)
_EXPLANATIONS = (
    (
        ["SQLITE_FULL"],
        "No room left for features in {root} ({words}). Features stored earlier are intact. Free "
        "some space, or ",
    ),
    (
        # SQLite has no other code for an exceeded quota or file size limit.
        ["SQLITE_IOERR_WRITE"],
        "Features cannot be written to {root} ({words}): a quota or a limit on file size may be "
        "reached. Features stored earlier are intact. Free some space, or ",
    ),
    (
        ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"],
        "The feature store {root} cannot be opened or written to ({words}). Change its "
        "permissions, or ",
    ),
    (
        ["SQLITE_BUSY", "SQLITE_LOCKED"],
        "Another process keeps the feature store {root} locked ({words}). Wait until it ends, or ",
    ),
    (_DAMAGE, "The feature store {root} is damaged ({words}). " + REPAIR + " Or "),
    (
        ["SQLITE_NOTADB"],
        "The feature store {root} is damaged ({words}). Delete the folder: its features are then "
        "encoded again. Or ",
    ),
    ([""], "The feature store {root} cannot be used ({words}). Check the drive, or "),
)

# Marks the file as ours: "ncut".
_APPLICATION_ID = 0x6E637574
# Version 1 was the index of the shard files of nouncut 0.1.0.
_SCHEMA_VERSION = 2
# Rows of 2 to 5 kB waste half of SQLite's usual pages of 4 kB. Larger pages than this make small
# appends slow, because each writes a page of the index per row.
_PAGE_BYTES = 16_384
_SCHEMA = (
    "CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " dtype TEXT NOT NULL, dim INTEGER NOT NULL)",
    "CREATE TABLE vector (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, key TEXT NOT NULL,"
    " checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (space, key))",
    "CREATE TABLE block (id INTEGER PRIMARY KEY, used REAL NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
# An append holds the lock for less than a second, the check of a large store for minutes.
_PATIENCE_SECONDS = 300.0


# SQL for the date of last use of a block; a damaged one counts as long ago.
USED = "CASE WHEN typeof(used) = 'real' AND used BETWEEN 0 AND 1e10 THEN used ELSE 0.0 END"
# SQLite's longest row has 1e9 bytes.
_LARGEST_DIM = 10**9


class Space(NamedTuple):
    """A set of vectors of one kind and length."""

    id: int
    name: str
    dtype: str
    dim: int

    @property
    def row_bytes(self) -> int:
        """Size of a vector."""
        return self.dim * DTYPES[self.dtype].itemsize


class DamagedError(sqlite3.DatabaseError):
    """Values that SQLite can read, but that nobody has written."""

    sqlite_errorname = "SQLITE_CORRUPT"


def create_database(root: Path) -> None:
    """Create the database unless it exists; refuse files that this version cannot use."""
    is_there = (root / DATABASE_NAME).exists()
    with explained(root, is_new=not is_there):
        if not is_there:
            root.mkdir(parents=True, exist_ok=True)
        with closing(connect(root, "rw" if is_there else "rwc")) as db:
            try:
                if _is_new(db, root):
                    _create_tables(db, root)
            except sqlite3.DatabaseError as error:
                # A broken file must open, so that it can be repaired.
                if not has_code(error, "SQLITE_CORRUPT"):
                    raise


def _create_tables(db: sqlite3.Connection, root: Path) -> None:
    db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("BEGIN IMMEDIATE")
    # Another process may have created the tables in the meantime.
    for statement in _SCHEMA if _is_new(db, root) else ():
        db.execute(statement)
    db.execute("COMMIT")


@contextmanager
def reading(root: Path) -> Iterator[sqlite3.Connection]:
    """Open the database to read; each statement holds a lock of its own, for a short time.

    A connection lives for one call of the store: opening costs little, and there is nothing to
    share between threads and forked processes.
    """
    with explained(root), closing(connect(root)) as db:
        yield db


@contextmanager
def transaction(root: Path, patience: float = _PATIENCE_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open the database to write; the changes of the block are all made, or none after an error."""
    with explained(root), closing(connect(root, patience=patience)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            # Closing alone keeps the lock while anything still refers to a statement.
            with suppress(sqlite3.Error):
                db.rollback()
            raise


def connect(
    root: Path, mode: str = "rw", patience: float = _PATIENCE_SECONDS
) -> sqlite3.Connection:
    """Open the database in autocommit mode."""
    address = f"{(root / DATABASE_NAME).absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, timeout=patience, isolation_level=None, uri=True)


def _is_new(db: sqlite3.Connection, root: Path) -> bool:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (n_tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables == 0 and version == 0:
        return True
    if application != _APPLICATION_ID:
        raise OutputError(
            f"{printable_path(root / DATABASE_NAME)} belongs to another program. Set NOUNCUT_CACHE "
            "to another folder."
        )
    if version != _SCHEMA_VERSION:
        raise OutputError(
            f"The feature store {printable_path(root)} was written by another version of nouncut "
            f"(format {version}; this one reads {_SCHEMA_VERSION}). Update nouncut, or set "
            "NOUNCUT_CACHE to another folder."
        )
    return False


def find_space(db: sqlite3.Connection, name: str) -> Space | None:
    """Return the space of that name, or None."""
    found = db.execute("SELECT id, name, dtype, dim FROM space WHERE name = ?", (name,)).fetchone()
    return None if found is None else checked_space(*found)


def checked_space(id_: object, name: object, dtype: object, dim: object) -> Space:
    """Return a space as it was read, unless its values are damaged."""
    is_whole = isinstance(id_, int) and isinstance(dim, int) and 0 < dim <= _LARGEST_DIM
    if not is_whole or not isinstance(name, str) or dtype not in DTYPES:
        raise DamagedError("the table of spaces holds wrong values")
    return Space(id_, name, dtype, dim)  # type: ignore[arg-type]


def add_space(db: sqlite3.Connection, name: str, dtype: str, dim: int) -> Space:
    """Add a space whose name is not taken."""
    cursor = db.execute("INSERT INTO space (name, dtype, dim) VALUES (?, ?, ?)", (name, dtype, dim))
    return Space(int(cursor.lastrowid or 0), name, dtype, dim)


def insert_rows(
    db: sqlite3.Connection, space: Space, rows: Iterable[tuple[str, bytes]], used: float
) -> int:
    """Insert pairs of key and data unless the key is stored; return the number of new rows."""
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM vector").fetchone()
    cursor = db.executemany(
        "INSERT OR IGNORE INTO vector (space, key, checksum, data) VALUES (?, ?, ?, ?)",
        ((space.id, key, row_checksum(space, key, data), data) for key, data in rows),
    )
    db.execute(
        f"INSERT INTO block SELECT DISTINCT id / {ROWS_PER_BLOCK}, ? FROM vector WHERE id > ?"
        " ON CONFLICT (id) DO UPDATE SET used = max(used, excluded.used)",
        (used, last),
    )
    return cursor.rowcount


def row_checksum(space: Space, key: str, data: bytes) -> int:
    """Return a checksum that covers space and key as well, so that rows cannot be mixed up."""
    owner = f"{space.name}\0{space.dtype}\0{space.dim}\0{key}\0"
    return zlib.crc32(data, zlib.crc32(owner.encode()))


def is_intact(space: Space, key: object, data: object, checksum: object) -> bool:
    """Compare a row with its checksum; a damaged row may hold values of any type."""
    if not isinstance(key, str) or not isinstance(data, bytes) or len(data) != space.row_bytes:
        return False
    # Rows of earlier versions have a checksum of key and data alone.
    earlier = zlib.crc32(data, zlib.crc32(key.encode()))
    return checksum in (row_checksum(space, key, data), earlier)


def split_keys(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Split keys into as many as one query takes."""
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        yield keys[start : start + _KEYS_PER_QUERY]


def select_rows(
    db: sqlite3.Connection, columns: str, space: Space, keys: Sequence[str]
) -> sqlite3.Cursor:
    """Select columns of the rows of some keys (one part of `split_keys`), in any order."""
    marks = ", ".join("?" * len(keys))
    query = f"SELECT {columns} FROM vector WHERE space = ? AND key IN ({marks})"
    return db.execute(query, (space.id, *keys))


def has_code(error: BaseException | None, *prefixes: str) -> bool:
    """Tell whether an error comes from SQLite and its code begins with one of the prefixes."""
    return getattr(error, "sqlite_errorname", "").startswith(prefixes)


def is_damage(error: BaseException | None) -> bool:
    """Tell whether SQLite found a file damaged."""
    return has_code(error, *_DAMAGE, "SQLITE_NOTADB")


@contextmanager
def explained(root: Path, *, is_new: bool = False) -> Iterator[None]:
    """Turn errors of the disk and of SQLite into an `OutputError` with a remedy."""
    instead = "set NOUNCUT_CACHE to another folder"
    try:
        with explained_writing("features", root, instead):
            yield
    except sqlite3.Error as error:
        is_gone = not is_new and not (root / DATABASE_NAME).exists()
        text = _explanation(_with_code(error), is_gone)
        text = text.format(root=printable_path(root), words=describe_error(error))
        raise OutputError(f"{text}{instead}.") from _with_code(error)


def _with_code(error: sqlite3.Error) -> sqlite3.Error:
    # Python reports text that is not UTF-8 without a code of SQLite.
    is_garbled = "decode" in str(error) and not has_code(error, "SQLITE")
    return DamagedError(str(error)) if is_garbled else error


def _explanation(error: sqlite3.Error, is_gone: bool) -> str:
    if is_gone and has_code(error, *_GONE):
        return _REMOVED
    return next(text for codes, text in _EXPLANATIONS if has_code(error, *codes))
