"""Getting vectors out of the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import OutputError
from nouncut.store.entries import Entry, Space, find_space, locate, note_use
from nouncut.store.errors import explained
from nouncut.store.index import transaction
from nouncut.store.shards import gather_rows, shard_path
from nouncut.store.writing import positions_of_new

# Keys looked up at once: bounds the memory that a read takes beside its result.
_KEYS_PER_BLOCK = 16_384


def find_missing(root: Path, space: str, keys: Sequence[str]) -> list[int]:
    """Return what `FeatureStore.missing` does."""
    with transaction(root) as db:
        known = find_space(db, space)
        stored = set() if known is None else set(locate(db, known.id, keys))
    return positions_of_new(keys, stored)


def read_rows(
    root: Path, space: str, keys: Sequence[str], out: NDArray[Any] | None
) -> NDArray[Any]:
    """Do what `FeatureStore.read` does."""
    with transaction(root) as db:
        known = find_space(db, space)
    if known is None:
        raise _not_stored(root, space, keys)
    if out is None:
        out = np.empty((len(keys), known.dim), dtype=np.float32)
    elif out.shape != (len(keys), known.dim):
        raise ValueError(
            f"out has the shape {out.shape}, but {len(keys)} vectors of length {known.dim} are to "
            "be read."
        )
    used: set[int] = set()
    for start in range(0, len(keys), _KEYS_PER_BLOCK):
        part = slice(start, start + _KEYS_PER_BLOCK)
        used |= _read_block(root, known, keys[part], out[part])
    note_use(root, used)
    return out


def _read_block(root: Path, space: Space, keys: Sequence[str], out: NDArray[Any]) -> set[int]:
    """Read one block of keys and return the shards used."""
    try:
        with explained(root):
            return _gather(root, space, keys, out)
    except OutputError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    # Another process may have pruned between the look-up and the reading: look again.
    with explained(root):
        return _gather(root, space, keys, out)


def _gather(root: Path, space: Space, keys: Sequence[str], out: NDArray[Any]) -> set[int]:
    with transaction(root) as db:
        found = locate(db, space.id, keys)
    if any(key not in found for key in keys):
        raise _not_stored(root, space.name, keys)
    by_shard: dict[int, list[tuple[int, Entry]]] = defaultdict(list)
    for position, key in enumerate(keys):
        by_shard[found[key].shard].append((position, found[key]))
    for shard, places in by_shard.items():
        places.sort(key=lambda place: place[1].row)
        wanted = [entry.row for _, entry in places]
        expected = [entry.checksum for _, entry in places]
        rows = gather_rows(shard_path(root, shard), space, wanted, expected)
        out[[position for position, _ in places]] = rows
    return set(by_shard)


def _not_stored(root: Path, space: str, keys: Sequence[str]) -> KeyError:
    missing = [keys[position] for position in find_missing(root, space, keys)]
    shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    return KeyError(
        f"{len(missing)} of {len(keys)} keys are not stored in space {space!r}: {shown}"
    )
