"""Attacks on the files of a feature store: flipped, zeroed and swapped bytes, and cut files.

A store may lose rows, but must never return a wrong one. Every error is a sentence of nouncut's
own, and a repair that succeeds leaves a clean store in which all rows can be stored again.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tally import Tally

from nouncut.errors import NouncutError
from nouncut.store.file_hashes import FileState, keep_hashes, known_hashes
from nouncut.store.store import FeatureStore

# Two spaces with the same keys and the same length, so that rows of one could pass for those of
# the other.
SPACES = {"images a": "float32", "images b": "float32", "texts": "float16"}
N_ROWS, DIM = 60, 24
KEYS = [f"{number:040x}" for number in range(N_ROWS)]
LIST = "texts of a list"
FILES = {
    Path(f"/photos/{number}.png"): (FileState(10 + number, 5, 6, str(number), "1"), KEYS[number])
    for number in range(20)
}
_OLD_SCHEMA = """
CREATE TABLE space (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    dtype TEXT NOT NULL, dim INTEGER NOT NULL);
CREATE TABLE shard (id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL,
    n_rows INTEGER NOT NULL, used REAL NOT NULL);
CREATE TABLE entry (space INTEGER NOT NULL, key TEXT NOT NULL, shard INTEGER NOT NULL,
    row INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID;
PRAGMA application_id = 0x6E637574;
PRAGMA user_version = 1;
"""


class Harm(NamedTuple):
    """A change of the bytes of a file from a position on."""

    name: str
    change: Callable[[bytearray, int, random.Random], None]


def _flip(content: bytearray, at: int, chance: random.Random) -> None:
    content[at] ^= 1 << chance.randrange(8)


def _overwrite(content: bytearray, at: int, chance: random.Random) -> None:
    content[at] = chance.randrange(256)


def _zero(content: bytearray, at: int, chance: random.Random) -> None:
    end = min(len(content), at + chance.choice((8, 64, 512, 4096)))
    content[at:end] = bytes(end - at)


def _copy(content: bytearray, at: int, chance: random.Random) -> None:
    """Write what belongs elsewhere, as a drive with a wrong address does."""
    size = chance.choice((8, 64, 512, 4096))
    other = chance.randrange(max(1, len(content) - size))
    piece = content[other : other + size][: len(content) - at]
    content[at : at + len(piece)] = piece


def _cut(content: bytearray, at: int, _: random.Random) -> None:
    del content[at:]


HARMS = tuple(
    Harm(change.__name__.strip("_"), change) for change in (_flip, _overwrite, _zero, _copy, _cut)
)


def rows_of(space: str) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(space.encode()))
    return rng.normal(size=(N_ROWS, DIM)).astype(SPACES.get(space, "float32"))


def write_store(root: Path) -> None:
    """Write a store with all kinds of files."""
    store = FeatureStore(root)
    for space, dtype in SPACES.items():
        store.append(space, KEYS, rows_of(space), dtype=dtype)
    store.join(LIST, KEYS, rows_of(LIST))
    keep_hashes(root, FILES)


def write_old_store(root: Path) -> None:
    """Write a store as nouncut 0.1.0 did: an index, and one file of rows per space."""
    (root / "shards").mkdir(parents=True)
    with closing(sqlite3.connect(root / "index.sqlite")) as db, db:
        db.executescript(_OLD_SCHEMA)
        for number, (space, dtype) in enumerate(SPACES.items(), start=1):
            rows = rows_of(space)
            db.execute("INSERT INTO space VALUES (?, ?, ?, ?)", (number, space, dtype, DIM))
            db.execute("INSERT INTO shard VALUES (?, ?, ?, 1e9)", (number, number, N_ROWS))
            db.executemany(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
                [
                    (number, key, number, row, zlib.crc32(rows[row].tobytes()))
                    for row, key in enumerate(KEYS)
                ],
            )
            (root / "shards" / f"{number:08d}.rows").write_bytes(rows.tobytes())


def attack_store(
    folder: Path,
    per_harm: int,
    *,
    write: Callable[[Path], None] = write_store,
    kind: str = "store files damaged",
    seed: int = 0,
) -> Tally:
    """Harm every file of a store, `per_harm` times in every way, spread over all its bytes."""
    original, root = folder / "original", folder / "attacked"
    write(original)
    tally = Tally(kind)
    files = sorted(path for path in original.rglob("*") if path.is_file())
    for path in files:
        name = path.relative_to(original)
        for harm, content, at in _harmed(path.read_bytes(), per_harm, seed):
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(original, root)
            (root / name).write_bytes(content)
            tally.attempt(f"{harm} at {at} of {name}", partial(use_and_repair, root))
    return tally


def _harmed(content: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes, int]]:
    for harm in HARMS:
        chance = random.Random(f"{seed} {harm.name}")
        for number in range(count):
            # One position in each of `count` equal parts.
            at = int((number + chance.random()) * len(content) / count)
            changed = bytearray(content)
            harm.change(changed, at, chance)
            yield harm.name, bytes(changed), at


def use_and_repair(root: Path) -> None:
    """Use a damaged store in all ways, then repair it; raise if harm was done."""
    with suppress(NouncutError):
        store = FeatureStore(root)
        _check_lists(store)
        for space in SPACES:
            # Rows that are not found are encoded again.
            with suppress(NouncutError, KeyError):
                _check_rows(store, space)
        with suppress(NouncutError):
            store.spaces()
    try:
        store = FeatureStore(root)
        store.check()
        store.repair()
    except NouncutError:
        return
    _check_clean(store)


def _check_lists(store: FeatureStore) -> None:
    """Compare what is read from the joined list and the hashes of files."""
    joined = store.read_joined(LIST, KEYS)
    if joined is not None:
        assert np.array_equal(joined, rows_of(LIST)), "a wrong list was read"
    found = known_hashes(store.root, {path: state for path, (state, _) in FILES.items()})
    for path, content in found.items():
        assert content == FILES[path][1], "a wrong hash was read"


def _check_rows(store: FeatureStore, space: str) -> list[int]:
    """Compare the stored rows of a space, and return the numbers of those that are missing."""
    missing, right = store.missing(space, KEYS), rows_of(space)
    stored = sorted(set(range(N_ROWS)) - set(missing))
    if not stored:
        return missing
    try:
        # Rows are compared one by one only where they cannot be read together.
        rows = store.read(space, [KEYS[number] for number in stored])
        assert np.array_equal(rows, right[stored]), "wrong rows were read"
    except NouncutError:
        for number in stored:
            with suppress(NouncutError, KeyError):
                row = store.read(space, [KEYS[number]])
                assert np.array_equal(row[0], right[number]), "a wrong row was read"
    return missing


def _check_clean(store: FeatureStore) -> None:
    """Check a repaired store, and that what was lost can be stored again."""
    assert store.check() == [], "a repaired store is damaged"
    for space, dtype in SPACES.items():
        missing = _check_rows(store, space)
        assert set(missing) >= set(store.missing(space, KEYS))
        store.append(space, KEYS, rows_of(space), dtype=dtype)
        assert np.array_equal(store.read(space, KEYS), rows_of(space)), "wrong rows after a repair"
    assert {info.name for info in store.spaces()} >= set(SPACES)
    store.prune(max_bytes=0)
    assert not store.spaces(), "pruning left rows"
