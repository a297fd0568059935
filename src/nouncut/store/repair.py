"""Damaged rows: finding them, deleting them, and saving the others from a broken file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from nouncut.store.database import (
    DATABASE_NAME,
    ROWS_PER_BLOCK,
    Space,
    add_space,
    connect,
    create_database,
    explained,
    find_space,
    has_code,
    insert_rows,
    is_intact,
    transaction,
)


class Damage(NamedTuple):
    """Rows with a wrong checksum, and whether the structure of the file is damaged."""

    problems: list[str]
    ids: list[int]
    is_broken: bool


def find_damage(root: Path) -> Damage:
    """Check the structure of the file and the checksum of every row."""
    ids, counts = [], Counter[str]()
    with _tolerant_connection(root) as db:
        # One read lock for all: a busy writer would delay every further one.
        db.execute("BEGIN")
        verdict = _check_structure(db)
        spaces = _read_spaces(db)
        for block, _ in _read_all(db, "SELECT id, used FROM block"):
            for row in _read_block(db, block):
                if row.space in spaces and not is_intact(row.key, row.data, row.checksum):
                    ids.append(row.id)
                    counts[spaces[row.space].name] += 1
    problems = [f"space {name!r}: {count} row(s) are damaged" for name, count in counts.items()]
    if verdict != "ok":
        problems.append(f"the structure of {DATABASE_NAME} is damaged ({verdict})")
    return Damage(problems, ids, verdict != "ok")


def drop_damage(root: Path, damage: Damage) -> None:
    """Delete damaged rows."""
    if damage.is_broken:
        _rebuild(root)
    elif damage.ids:
        with transaction(root) as db:
            db.executemany("DELETE FROM vector WHERE id = ?", ((id_,) for id_ in damage.ids))


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
            for block, used in _read_all(broken, "SELECT id, used FROM block"):
                with transaction(new_root) as db:
                    for space, rows in groupby(_read_block(broken, block), lambda row: row.space):
                        if space in spaces:
                            _copy_rows(db, spaces[space], rows, used)
        with explained(root):
            os.replace(new_root / DATABASE_NAME, root / DATABASE_NAME)
    finally:
        shutil.rmtree(new_root, ignore_errors=True)


class _Row(NamedTuple):
    id: int
    space: int
    key: str
    checksum: int
    data: bytes


def _copy_rows(db: sqlite3.Connection, space: Space, rows: Iterator[_Row], used: float) -> None:
    intact = ((row.key, row.data) for row in rows if is_intact(row.key, row.data, row.checksum))
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
    except sqlite3.DatabaseError as error:
        if has_code(error, "SQLITE_BUSY"):
            raise
        verdict = str(error)
    return " ".join(verdict.split())


def _read_spaces(db: sqlite3.Connection) -> dict[int, Space]:
    return {row[0]: Space(*row) for row in _read_all(db, "SELECT id, name, dtype, dim FROM space")}


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
    query = "SELECT id, space, key, checksum, data FROM vector WHERE id BETWEEN ? AND ?"
    try:
        found = db.execute(query, (first, last)).fetchall()
    except sqlite3.DatabaseError:
        if first < last:
            middle = (first + last) // 2
            yield from _read_range(db, first, middle)
            yield from _read_range(db, middle + 1, last)
        return
    yield from (_Row(*values) for values in found)
