"""Reading rows of the database, each compared with its checksum."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import OutputError, ParameterError, printable_path
from nouncut.store.database import (
    DTYPES,
    REPAIR,
    ROWS_PER_BLOCK,
    USED,
    Space,
    find_space,
    is_intact,
    reading,
    select_rows,
    split_keys,
    transaction,
)

# Noting every use would make reading as slow as writing.
USE_RESOLUTION_SECONDS = 3600.0


class StoredRows(NamedTuple):
    """Vectors in the order of their keys; those that are missing are all zero."""

    vectors: NDArray[Any] | None
    missing: list[int]


def read_rows(
    root: Path, name: str, keys: Sequence[str], out: NDArray[Any] | None = None
) -> StoredRows:
    """Read the vectors of keys of a space; no vectors at all if there is no such space."""
    blocks: set[int] = set()
    missing: list[int] = []
    with reading(root) as db:
        space = find_space(db, name)
        if space is None:
            return StoredRows(None, list(range(len(keys))))
        if out is not None and out.shape != (len(keys), space.dim):
            raise ParameterError(
                f"`out` has the shape {out.shape}, but {len(keys)} vectors of length {space.dim} "
                "are to be read."
            )
        end, absent = 0, bytes(space.row_bytes)
        for part in split_keys(keys):
            data = _select_intact(db, root, space, part, blocks)
            if out is None:
                out = np.empty((len(keys), space.dim), dtype=np.float32)
            joined = b"".join(data.get(key, absent) for key in part)
            start, end = end, end + len(part)
            missing += [start + i for i, key in enumerate(part) if key not in data]
            out[start:end] = np.frombuffer(joined, DTYPES[space.dtype]).reshape(-1, space.dim)
    _note_use(root, blocks)
    if out is None:
        out = np.empty((0, space.dim), np.float32)
    return StoredRows(out, missing)


def _select_intact(
    db: sqlite3.Connection, root: Path, space: Space, keys: Sequence[str], blocks: set[int]
) -> dict[str, bytes]:
    """Return the data of stored keys; add the blocks of their rows to `blocks`."""
    found = {}
    for id_, key, checksum, data in select_rows(db, "id, key, checksum, data", space, keys):
        if not is_intact(space, key, data, checksum):
            where = printable_path(root)
            raise OutputError(f"The feature store {where} holds damaged rows. {REPAIR}")
        found[key] = data
        blocks.add(id_ // ROWS_PER_BLOCK)
    return found


def note_use_of_space(root: Path, name: str) -> None:
    """Note the use of all rows of a space."""
    with suppress(OutputError), reading(root) as db:
        space = find_space(db, name)
        if space is not None:
            query = f"SELECT DISTINCT id / {ROWS_PER_BLOCK} FROM vector WHERE space = ?"
            _note_use(root, {block for (block,) in db.execute(query, (space.id,))})


def _note_use(root: Path, blocks: set[int]) -> None:
    now = time.time()
    # A read does not fail because its date cannot be noted, for instance in a read-only folder.
    with suppress(OutputError):
        with reading(root) as db:
            stale = [
                (now, block)
                for block, used in db.execute(f"SELECT id, {USED} FROM block")
                if block in blocks and used < now - USE_RESOLUTION_SECONDS
            ]
        if stale:
            with transaction(root, patience=1.0) as db:
                db.executemany("UPDATE block SET used = ? WHERE id = ?", stale)
