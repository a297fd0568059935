"""Deleting rows by space, age and size."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from nouncut.errors import OutputError
from nouncut.store.database import (
    ROWS_PER_BLOCK,
    USED,
    Space,
    checked_space,
    has_code,
    reading,
    transaction,
)

# A power of 8, which is divided by 8 where it is too large.
_STEP_SIZE = 4096


class Usage(NamedTuple):
    """The rows of one space in one block."""

    space: Space
    block: int
    n_rows: int
    used: float

    @property
    def n_bytes(self) -> int:
        """Size of the vectors."""
        return self.n_rows * self.space.row_bytes


def read_usage(root: Path) -> list[Usage]:
    """Count the rows of every space and block, sorted by the name of the space."""
    query = (
        f"SELECT space.id, name, dtype, dim, block.id, n_rows, {USED} FROM"
        f" (SELECT space AS space_id, id / {ROWS_PER_BLOCK} AS block_id, count(*) AS n_rows"
        "  FROM vector GROUP BY space_id, block_id)"
        " JOIN space ON space.id = space_id JOIN block ON block.id = block_id ORDER BY name"
    )
    with reading(root) as db:
        return [
            Usage(checked_space(*found), block, n_rows, used)
            for *found, block, n_rows, used in db.execute(query)
        ]


def prune_rows(
    root: Path, spaces: set[str], unused_for: timedelta | None, max_bytes: int | None
) -> None:
    """Delete spaces, blocks of a certain age, and blocks beyond a size."""
    kept = [part for part in read_usage(root) if part.space.name not in spaces]
    oldest = -math.inf if unused_for is None else time.time() - unused_for.total_seconds()
    blocks = {part.block for part in kept if part.used <= oldest}
    if max_bytes is not None:
        blocks |= _blocks_over(max_bytes, [part for part in kept if part.block not in blocks])
    for space in spaces:
        _delete(root, "space = (SELECT id FROM space WHERE name = ?)", space)
    for block in sorted(blocks):
        first = block * ROWS_PER_BLOCK
        _delete(root, "id BETWEEN ? AND ?", first, first + ROWS_PER_BLOCK - 1)
    with transaction(root) as db:
        db.execute(
            "DELETE FROM space WHERE NOT EXISTS (SELECT 1 FROM vector WHERE space = space.id)"
        )
        db.execute(
            "DELETE FROM block WHERE NOT EXISTS (SELECT 1 FROM vector WHERE vector.id BETWEEN"
            f" block.id * {ROWS_PER_BLOCK} AND (block.id + 1) * {ROWS_PER_BLOCK} - 1)"
        )
    _repeat(root, _free_pages)


def _blocks_over(max_bytes: int, usage: Iterable[Usage]) -> set[int]:
    """Return the least recently used blocks that must go to meet a size."""
    sizes: Counter[tuple[float, int]] = Counter()
    for part in usage:
        sizes[part.used, part.block] += part.n_bytes
    total = sizes.total()
    blocks = set()
    for (_, block), n_bytes in sorted(sizes.items()):
        if total <= max_bytes:
            break
        blocks.add(block)
        total -= n_bytes
    return blocks


def _delete(root: Path, condition: str, *values: object) -> None:
    selected = f"SELECT id FROM vector WHERE {condition} LIMIT ?"
    query = f"DELETE FROM vector WHERE id IN ({selected})"
    _repeat(root, lambda db, size: db.execute(query, (*values, size)).rowcount)


def _free_pages(db: sqlite3.Connection, size: int) -> int:
    """Give pages back to the file system; unlike VACUUM, this needs no copy of the file."""
    (n_free,) = db.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(size, n_free)):
        db.execute("PRAGMA incremental_vacuum(1)")
    return int(n_free)


def _repeat(root: Path, step: Callable[[sqlite3.Connection, int], int]) -> None:
    """Repeat a step, each in its own transaction, until it returns 0.

    A transaction copies what it changes to the rollback journal. On a full disk, the steps become
    smaller until the journal fits.
    """
    size = _STEP_SIZE
    while True:
        try:
            with transaction(root) as db:
                if not step(db, size):
                    return
        except OutputError as error:
            is_full = has_code(error.__cause__, "SQLITE_FULL", "SQLITE_IOERR_WRITE")
            if size == 1 or not is_full:
                raise
            size //= 8
