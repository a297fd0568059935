"""The index of the store: its format and its transactions.

It is one SQLite file. A transaction that writes is also the lock between processes. The
rollback journal is kept rather than the write-ahead log, because the latter needs memory shared
between processes and so fails on network drives, and because it cannot be read where the folder
is read-only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nouncut.errors import OutputError
from nouncut.store.errors import explained

SCHEMA_VERSION = 1
INDEX_NAME = "index.sqlite"
# Marks an SQLite file as ours: "ncut".
_APPLICATION_ID = 0x6E637574
_SCHEMA = (
    "CREATE TABLE space (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " dtype TEXT NOT NULL, dim INTEGER NOT NULL)",
    # AUTOINCREMENT never gives a number twice, so a shard's file name never changes its meaning.
    "CREATE TABLE shard (id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL,"
    " n_rows INTEGER NOT NULL, used REAL NOT NULL)",
    "CREATE TABLE entry (space INTEGER NOT NULL, key TEXT NOT NULL, shard INTEGER NOT NULL,"
    " row INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
# Writers hold the lock for one append each; a minute is far beyond that.
_PATIENCE_SECONDS = 60.0


@contextmanager
def transaction(
    root: Path, *, write: bool = False, patience: float = _PATIENCE_SECONDS
) -> Iterator[sqlite3.Connection]:
    """Open the index for reading or writing; all changes are made at the end, or none.

    A connection lives for one transaction: it costs little, and nothing is left to close or to
    share between threads and forked processes.
    """
    with explained(root), _connection(root, "rw", patience) as db:
        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        # After an error the connection is closed without a commit, which takes all back.
        yield db
        db.execute("COMMIT")


def create_index(root: Path) -> None:
    """Make the index where there is none; check that it can be understood where there is."""
    with explained(root):
        if not (root / INDEX_NAME).exists():
            root.mkdir(parents=True, exist_ok=True)
        mode = "rw" if (root / INDEX_NAME).exists() else "rwc"
        with _connection(root, mode, _PATIENCE_SECONDS) as db:
            if _is_new(db, root):
                db.execute("BEGIN IMMEDIATE")
                # Another process may have been faster.
                for statement in _SCHEMA if _is_new(db, root) else ():
                    db.execute(statement)
                db.execute("COMMIT")


@contextmanager
def _connection(root: Path, mode: str, patience: float) -> Iterator[sqlite3.Connection]:
    address = f"{(root / INDEX_NAME).absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, timeout=patience, isolation_level=None, uri=True)
    try:
        yield db
    finally:
        db.close()


def _is_new(db: sqlite3.Connection, root: Path) -> bool:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (n_tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables == 0 and version == 0:
        return True
    if application != _APPLICATION_ID:
        raise OutputError(
            f"{root / INDEX_NAME} belongs to another program. Choose another folder for the "
            "feature store, for example with NOUNCUT_CACHE."
        )
    if version != SCHEMA_VERSION:
        is_newer = version > SCHEMA_VERSION
        raise OutputError(
            f"The feature store {root} was made by {'a newer' if is_newer else 'an older'} nouncut "
            f"(format {version}; this one knows {SCHEMA_VERSION}). "
            f"{'Update nouncut' if is_newer else 'Delete the folder'}, or set NOUNCUT_CACHE to "
            "another folder."
        )
    return False


def compact_index(root: Path) -> None:
    """Give back the disk space of removed entries."""
    # Needs room for a copy of the index and nobody else at it; else it just stays as large.
    with suppress(sqlite3.OperationalError), _connection(root, "rw", patience=1.0) as db:
        db.execute("VACUUM")
