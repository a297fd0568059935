"""Adding vectors to the store.

The lock on the index is held from looking up what is new until its rows are on the disk and
known: so two processes never write the same vector or the same place, and rows that a killed
process left behind are written over by the next one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.compute.checks import check_choice
from nouncut.store.entries import (
    Shard,
    Space,
    add_entries,
    add_shard,
    add_space,
    find_space,
    locate,
    newest_shard,
)
from nouncut.store.index import transaction
from nouncut.store.shards import (
    DTYPES,
    SHARD_BYTES,
    checksums,
    encode_rows,
    row_bytes,
    shard_path,
    write_rows,
)


def append_rows(
    root: Path, space: str, keys: Sequence[str], rows: ArrayLike, dtype: str | None
) -> int:
    """Do what `FeatureStore.append` does."""
    checked = _check_rows(keys, rows)
    if dtype is not None:
        check_choice("dtype", dtype, tuple(DTYPES))
    if not len(checked):
        return 0
    dim = checked.shape[1]
    with transaction(root, write=True) as db:
        known = find_space(db, space) or add_space(db, space, dtype or "float32", dim)
        _check_space(known, dtype, dim)
        new = positions_of_new(keys, locate(db, known.id, keys))
        rows_per_part = max(1, SHARD_BYTES // row_bytes(known))
        for start in range(0, len(new), rows_per_part):
            part = new[start : start + rows_per_part]
            _append_part(db, root, known, [keys[position] for position in part], checked[part])
    return len(new)


def positions_of_new(keys: Sequence[str], stored: Container[str]) -> list[int]:
    """Return where keys that are not stored occur first."""
    first: dict[str, int] = {}
    for position, key in enumerate(keys):
        if key not in stored:
            first.setdefault(key, position)
    return list(first.values())


def _append_part(
    db: sqlite3.Connection, root: Path, space: Space, keys: list[str], rows: NDArray[Any]
) -> None:
    encoded = encode_rows(rows, space.dtype)
    shard = _shard_with_room(root, newest_shard(db, space.id), space) or add_shard(db, space.id)
    write_rows(shard_path(root, shard.id), shard.n_rows * row_bytes(space), encoded)
    add_entries(db, shard, keys, checksums(encoded).tolist())


def _shard_with_room(root: Path, shard: Shard | None, space: Space) -> Shard | None:
    """Return the shard if rows can go to its end."""
    if shard is None:
        return None
    n_bytes = shard.n_rows * row_bytes(space)
    path = shard_path(root, shard.id)
    # A file that lost rows must not grow again, or the loss would be hidden behind zeros.
    is_whole = path.exists() and path.stat().st_size >= n_bytes
    return shard if is_whole and n_bytes < SHARD_BYTES else None


def _check_rows(keys: Sequence[str], rows: ArrayLike) -> NDArray[Any]:
    checked = np.asarray(rows)
    if checked.dtype.kind != "f":
        checked = checked.astype(np.float32)
    if checked.ndim != 2 or len(checked) != len(keys):
        raise ValueError(
            f"rows has the shape {checked.shape}, but {len(keys)} keys need as many rows: "
            f"({len(keys)}, dim)."
        )
    if len(checked) and not checked.shape[1]:
        raise ValueError("rows has no columns: a vector needs at least one value.")
    unfit = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if len(unfit):
        raise ValueError(
            f"{len(unfit)} of {len(checked)} rows hold NaN or infinite values, the first for key "
            f"{keys[unfit[0]]!r}. They are not stored: leave them out or encode them again."
        )
    return checked


def _check_space(space: Space, dtype: str | None, dim: int) -> None:
    if dim != space.dim:
        raise ValueError(
            f"Space {space.name!r} holds vectors of length {space.dim}; got {dim}. Another model "
            "or setting needs another space."
        )
    if dtype not in (None, space.dtype):
        raise ValueError(
            f"Space {space.name!r} is stored as {space.dtype}, not {dtype}. Leave dtype out, or "
            "remove the space first with prune."
        )
