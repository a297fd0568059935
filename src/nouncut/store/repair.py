"""Damaged rows: finding them, deleting them, and saving the others from a broken file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from nouncut.errors import OutputError
from nouncut.store.database import (
    DATABASE_NAME,
    ROWS_PER_BLOCK,
    USED,
    DamagedError,
    Space,
    add_space,
    checked_space,
    connect,
    create_database,
    explained,
    find_space,
    has_code,
    insert_rows,
    is_damage,
    is_intact,
    transaction,
)

_TABLES = (
    "id, space, key, checksum, data FROM vector",
    "id, name, dtype, dim FROM space",
    "id, used FROM block",
)
# Ids of rows have 63 bits.
_MAX_BLOCK = 2**63 // ROWS_PER_BLOCK


class Damage(NamedTuple):
    """Rows with a wrong checksum, blocks without a date, and whether the file must be rebuilt."""

    problems: list[str]
    ids: list[int]
    undated: list[int]
    is_broken: bool


def find_damage(root: Path) -> Damage:
    """Check the structure of the file and the checksum of every row."""
    ids, counts = [], Counter[str]()
    with _tolerant_connection(root) as db:
        # One read lock for all: a busy writer would delay every further one.
        db.execute("BEGIN")
        verdict = _check_structure(db)
        spaces, blocks = _read_spaces(db), _read_blocks(db)
        for block in blocks:
            for row in _read_block(db, block):
                if not row.is_intact_in(spaces):
                    ids.append(row.id)
                    counts[_shown_space(spaces.get(row.space))] += 1
    problems = [f"{name}: {count} row(s) are damaged" for name, count in counts.items()]
    undated = [block for block, used in blocks.items() if not used]
    if undated:
        problems.append(f"{len(undated)} date(s) of use are damaged")
    if verdict != "ok":
        problems.append(f"the structure of {DATABASE_NAME} is damaged ({verdict})")
    return Damage(problems, ids, undated, verdict != "ok")


def drop_damage(root: Path, damage: Damage) -> None:
    """Delete damaged rows."""
    if not damage.problems:
        return
    try:
        if not damage.is_broken:
            _drop_rows(root, damage)
    except OutputError as error:
        if not is_damage(error.__cause__):
            raise
    if damage.is_broken or find_damage(root).problems:
        _rebuild(root)


def _drop_rows(root: Path, damage: Damage) -> None:
    with transaction(root) as db:
        db.executemany("DELETE FROM vector WHERE id = ?", ((id_,) for id_ in damage.ids))
        # A space with damaged values has lost all its rows.
        db.execute(
            "DELETE FROM space WHERE NOT EXISTS (SELECT 1 FROM vector WHERE space = space.id)"
        )
        db.executemany(
            "INSERT OR REPLACE INTO block VALUES (?, ?)",
            ((block, time.time()) for block in damage.undated),
        )


def _rebuild(root: Path) -> None:
    """Copy the intact rows to a new file, which replaces the broken one."""
    new_root = root / "repaired"
    try:
        with _tolerant_connection(root) as broken:
            # Rows that another process adds from now on would be lost.
            broken.execute("BEGIN IMMEDIATE")
            shutil.rmtree(new_root, ignore_errors=True)
            create_database(new_root)
            spaces = _read_spaces(broken)
            for block, used in _read_blocks(broken).items():
                with transaction(new_root) as db:
                    for space, rows in groupby(_read_block(broken, block), lambda row: row.space):
                        if space in spaces:
                            _copy_rows(db, spaces[space], rows, used or time.time())
        with explained(root):
            os.replace(new_root / DATABASE_NAME, root / DATABASE_NAME)
    finally:
        shutil.rmtree(new_root, ignore_errors=True)


class _Row(NamedTuple):
    """A row as it was read; if it is damaged, its values may be of any type."""

    id: int
    space: int
    key: str
    checksum: int
    data: bytes

    def is_intact_in(self, spaces: dict[int, Space]) -> bool:
        space = spaces.get(self.space)
        return space is not None and is_intact(space, self.key, self.data, self.checksum)


def _shown_space(space: Space | None) -> str:
    return "unknown space" if space is None else f"space {space.name!r}"


def _copy_rows(db: sqlite3.Connection, space: Space, rows: Iterator[_Row], used: float) -> None:
    intact = ((row.key, row.data) for row in rows if row.is_intact_in({row.space: space}))
    insert_rows(db, find_space(db, space.name) or add_space(db, *space[1:]), intact, used)


@contextmanager
def _tolerant_connection(root: Path) -> Iterator[sqlite3.Connection]:
    with explained(root), closing(connect(root)) as db:
        # SQLite would read nothing from a file that was cut, and Python no key with a wrong byte.
        db.execute("PRAGMA writable_schema = ON")
        db.text_factory = lambda text: text.decode(errors="replace")
        yield db


def _check_structure(db: sqlite3.Connection) -> str:
    try:
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        for table in _TABLES:
            db.execute(f"SELECT {table} LIMIT 0")
    except sqlite3.DatabaseError as error:
        if has_code(error, "SQLITE_BUSY"):
            raise
        verdict = str(error)
    return " ".join(verdict.split())


def _read_spaces(db: sqlite3.Connection) -> dict[int, Space]:
    spaces = {}
    for row in _read_all(db, "SELECT id, name, dtype, dim FROM space"):
        with suppress(DamagedError):
            spaces[row[0]] = checked_space(*row)
    return spaces


def _read_blocks(db: sqlite3.Connection) -> dict[int, float]:
    """Return the blocks that hold rows, or may, and when they were used; 0 if that is unknown."""
    rows = _read_all(db, f"SELECT id, {USED} FROM block")
    blocks = {block: used for block, used in rows if 0 <= block < _MAX_BLOCK}
    block, query = 0, "SELECT min(id) FROM vector WHERE id >= ?"
    with suppress(sqlite3.DatabaseError):
        while block < _MAX_BLOCK:
            (id_,) = db.execute(query, (block * ROWS_PER_BLOCK,)).fetchone()
            if id_ is None:
                break
            blocks.setdefault(id_ // ROWS_PER_BLOCK, 0.0)
            block = id_ // ROWS_PER_BLOCK + 1
    return blocks


def _read_all(db: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return db.execute(query).fetchall()
    except sqlite3.DatabaseError:
        return []


def _read_block(db: sqlite3.Connection, block: int) -> Iterator[_Row]:
    first = block * ROWS_PER_BLOCK
    return _read_range(db, first, first + ROWS_PER_BLOCK - 1)


def _read_range(db: sqlite3.Connection, first: int, last: int) -> Iterator[_Row]:
    """Read the rows of a range of ids; halve it where a page of the file cannot be read."""
    query = f"SELECT {_TABLES[0]} WHERE id BETWEEN ? AND ?"
    try:
        found = db.execute(query, (first, last)).fetchall()
    except sqlite3.DatabaseError:
        if first < last:
            middle = (first + last) // 2
            yield from _read_range(db, first, middle)
            yield from _read_range(db, middle + 1, last)
        return
    yield from (_Row(*values) for values in found)
