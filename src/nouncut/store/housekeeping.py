"""Looking after the store: what is in it, what may go, what is damaged."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import OutputError
from nouncut.store.entries import Shard, Space
from nouncut.store.index import INDEX_NAME, compact_index, transaction
from nouncut.store.shards import FOLDER, checksums, map_rows, row_bytes, shard_path

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class SpaceInfo:
    """What is stored in a space."""

    name: str
    n_rows: int
    dim: int
    dtype: str
    n_bytes: int
    last_used: datetime


@dataclass(frozen=True)
class Damage:
    """Rows of a shard that are not what was once written."""

    space: str
    shard: int
    rows: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        shown = ", ".join(str(row) for row in self.rows[:5])
        more = ", ..." if len(self.rows) > 5 else ""
        return (
            f"space {self.space!r}: {len(self.rows)} row(s) of shard {self.shard} are damaged "
            f"({self.reason}): {shown}{more}"
        )


def _list_shards(db: sqlite3.Connection) -> list[tuple[Shard, Space]]:
    found = db.execute(
        "SELECT shard.id, shard.space, n_rows, used, space.id, name, dtype, dim"
        " FROM shard JOIN space ON shard.space = space.id ORDER BY shard.id"
    )
    return [(Shard(*values[:4]), Space(*values[4:])) for values in found]


def list_spaces(root: Path) -> list[SpaceInfo]:
    """Return what `FeatureStore.spaces` does."""
    with transaction(root) as db:
        shards = _list_shards(db)
        counts = dict(
            db.execute(
                "SELECT entry.space, count(*) FROM entry JOIN shard ON shard.id = entry.shard"
                " GROUP BY entry.space"
            )
        )
    by_space: dict[Space, list[Shard]] = defaultdict(list)
    for shard, space in shards:
        by_space[space].append(shard)
    return [
        SpaceInfo(
            space.name,
            counts.get(space.id, 0),
            space.dim,
            space.dtype,
            sum(shard.n_rows for shard in parts) * row_bytes(space),
            datetime.fromtimestamp(max(shard.used for shard in parts), UTC),
        )
        for space, parts in sorted(by_space.items(), key=lambda item: item[0].name)
    ]


def measure(root: Path) -> int:
    """Return what `FeatureStore.size` does."""
    total = 0
    for path in (root / INDEX_NAME, *(root / FOLDER).glob("*.rows")):
        # Another process may remove files meanwhile.
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def prune(
    root: Path, spaces: Iterable[str], unused_for: timedelta | None, max_bytes: int | None
) -> int:
    """Do what `FeatureStore.prune` does."""
    before = measure(root)
    oldest = -np.inf if unused_for is None else time.time() - unused_for.total_seconds()
    with transaction(root, write=True) as db:
        shards = _list_shards(db)
        doomed = {s.id for s, space in shards if space.name in spaces or s.used <= oldest}
        kept = [(shard, space) for shard, space in shards if shard.id not in doomed]
        if max_bytes is not None:
            doomed |= _over_budget(kept, max_bytes)
        # Noting all the removed entries takes room that a full disk does not have. So first
        # forget the shards, which takes almost none, then remove their files, then the entries.
        db.executemany("DELETE FROM shard WHERE id = ?", [(shard,) for shard in doomed])
    _sweep(root)
    return before - measure(root)


def _over_budget(shards: list[tuple[Shard, Space]], max_bytes: int) -> set[int]:
    """Return the shards, least recently used first, that must go to meet a size."""
    total = sum(shard.n_rows * row_bytes(space) for shard, space in shards)
    doomed = set()
    for shard, space in sorted(shards, key=lambda one: (one[0].used, one[0].id)):
        if total <= max_bytes:
            break
        doomed.add(shard.id)
        total -= shard.n_rows * row_bytes(space)
    return doomed


def _sweep(root: Path) -> None:
    """Remove files, ends of files and entries that belong to no shard."""
    # Holding the write lock, no other process can be about to add what looks like a leftover.
    with transaction(root, write=True) as db:
        known = {shard_path(root, s.id): s.n_rows * row_bytes(sp) for s, sp in _list_shards(db)}
        for path in (root / FOLDER).glob("*.rows"):
            # Windows does not remove a file that is in use; the next time will.
            with suppress(PermissionError):
                if path not in known:
                    path.unlink()
                elif path.stat().st_size > known[path]:
                    _cut(path, known[path])
    with transaction(root, write=True) as db:
        db.execute("DELETE FROM entry WHERE shard NOT IN (SELECT id FROM shard)")
        db.execute("DELETE FROM space WHERE id NOT IN (SELECT space FROM shard)")
    compact_index(root)


def _cut(path: Path, n_bytes: int) -> None:
    with path.open("r+b") as file:
        file.truncate(n_bytes)


def check(root: Path) -> list[str]:
    """Do what `FeatureStore.check` does."""
    try:
        with transaction(root) as db:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            return [f"the index is damaged ({verdict}): delete {root}, all is computed again"]
        return [str(one) for one in find_damage(root)]
    except OutputError as error:
        return [str(error)]


def find_damage(root: Path) -> list[Damage]:
    """Compare all rows with their checksums.

    Nothing is locked meanwhile: rows never change once the index knows of them.
    """
    with transaction(root) as db:
        shards = _list_shards(db)
        entries = np.fromiter(
            db.execute("SELECT shard, row, checksum FROM entry"),
            dtype=[("shard", np.int64), ("row", np.int64), ("checksum", np.int64)],
        )
    entries.sort(order=("shard", "row"))
    damage = []
    for shard, space in shards:
        first, last = np.searchsorted(entries["shard"], [shard.id, shard.id + 1])
        own = entries[first:last]
        for reason, rows in _damaged_rows(root, shard, space, own):
            damage.append(Damage(space.name, shard.id, tuple(rows.tolist()), reason))
    return damage


def _damaged_rows(
    root: Path, shard: Shard, space: Space, entries: NDArray[Any]
) -> Iterator[tuple[str, NDArray[Any]]]:
    try:
        mapped = map_rows(shard_path(root, shard.id), space, shard.n_rows)
    except OSError:
        if len(entries):
            yield "the file cannot be read", entries["row"]
        return
    is_there = entries["row"] < len(mapped)
    if not is_there.all():
        yield "the file ends before them", entries["row"][~is_there]
    present = entries[is_there]
    for start in range(0, len(present), _ROWS_AT_ONCE):
        part = present[start : start + _ROWS_AT_ONCE]
        rows = np.asarray(mapped[part["row"]])
        differs = checksums(rows) != part["checksum"]
        if differs.any():
            yield "wrong checksum", part["row"][differs]
        unfit = ~differs & ~np.isfinite(rows).all(axis=1)
        if unfit.any():
            yield "NaN or infinite values", part["row"][unfit]


def drop_damage(root: Path) -> list[Damage]:
    """Remove damaged rows from the index."""
    damage = find_damage(root)
    if damage:
        with transaction(root, write=True) as db:
            db.execute(
                "CREATE TEMP TABLE bad (shard INTEGER, row INTEGER, PRIMARY KEY (shard, row))"
            )
            db.executemany(
                "INSERT OR IGNORE INTO bad VALUES (?, ?)",
                ((one.shard, row) for one in damage for row in one.rows),
            )
            db.execute("DELETE FROM entry WHERE (shard, row) IN (SELECT shard, row FROM bad)")
            db.execute("DELETE FROM shard WHERE id NOT IN (SELECT shard FROM entry)")
        _sweep(root)
    return damage
