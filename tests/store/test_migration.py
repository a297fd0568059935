"""Caches of nouncut 0.1.0 are moved into the database."""

import logging
import sqlite3
import zlib
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest

from nouncut.store.store import FeatureStore

SCHEMA = """
CREATE TABLE space (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    dtype TEXT NOT NULL, dim INTEGER NOT NULL);
CREATE TABLE shard (id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL,
    n_rows INTEGER NOT NULL, used REAL NOT NULL);
CREATE TABLE entry (space INTEGER NOT NULL, key TEXT NOT NULL, shard INTEGER NOT NULL,
    row INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID;
PRAGMA application_id = 0x6E637574;
PRAGMA user_version = 1;
"""
USED = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def old_rows():
    rng = np.random.default_rng(0)
    return {"images a": rng.normal(size=(6, 3)).astype("<f4"), "texts a": np.ones((4, 2), "<f2")}


@pytest.fixture
def root(tmp_path, old_rows):
    """Write a cache as nouncut 0.1.0 did: one shard per space, the second shard is damaged."""
    (tmp_path / "shards").mkdir()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as db, db:
        db.executescript(SCHEMA)
        for number, (name, rows) in enumerate(old_rows.items(), start=1):
            space = (number, name, rows.dtype.name, rows.shape[1])
            db.execute("INSERT INTO space VALUES (?, ?, ?, ?)", space)
            shard = (number, number, len(rows), USED.timestamp())
            db.execute("INSERT INTO shard VALUES (?, ?, ?, ?)", shard)
            db.executemany(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
                [
                    (number, f"key-{row}", number, row, zlib.crc32(data.tobytes()))
                    for row, data in enumerate(rows)
                ],
            )
            content = bytearray(rows.tobytes())
            if number == 2:
                # One row has changed, the last one is cut.
                content[5] ^= 1
                del content[-2:]
            (tmp_path / "shards" / f"{number:08d}.rows").write_bytes(content)
    return tmp_path


def test_intact_rows_move_and_the_old_files_go(root, old_rows):
    store = FeatureStore(root)
    keys = [f"key-{row}" for row in range(6)]
    assert np.array_equal(store.read("images a", keys), old_rows["images a"])
    assert store.missing("texts a", keys[:4]) == [1, 3]
    spaces = [(space.name, space.n_rows, space.dtype) for space in store.spaces()]
    assert spaces == [("images a", 6, "float32"), ("texts a", 2, "float16")]
    assert store.check() == []
    assert [path.name for path in root.iterdir()] == ["features.sqlite"]


def test_the_date_of_last_use_is_kept(root):
    assert {space.last_used for space in FeatureStore(root).spaces()} == {USED}


def test_a_migration_that_was_killed_goes_on(root, old_rows):
    index, shard = root / "index.sqlite", root / "shards" / "00000001.rows"
    kept = {path: path.read_bytes() for path in (index, shard)}
    FeatureStore(root)
    shard.parent.mkdir()
    for path, content in kept.items():
        path.write_bytes(content)
    store = FeatureStore(root)
    assert [space.n_rows for space in store.spaces()] == [6, 2]
    assert np.array_equal(store.read("images a", ["key-5"]), old_rows["images a"][5:])


def test_what_cannot_be_migrated_is_ignored_and_pruned(root, caplog):
    index = root / "index.sqlite"
    index.write_bytes(index.read_bytes()[:100] + b"damaged" * 1000)
    with caplog.at_level(logging.WARNING, logger="nouncut"):
        store = FeatureStore(root)
    assert "0.1.0" in caplog.text
    assert store.spaces() == []
    assert store.append("images a", ["k"], [[1.0]]) == 1
    assert store.prune() > 7000
    assert [path.name for path in root.iterdir()] == ["features.sqlite"]
    assert store.read("images a", ["k"]).tolist() == [[1.0]]


def test_files_of_other_programs_are_left_alone(tmp_path):
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as db, db:
        db.execute("CREATE TABLE shard (mine)")
    FeatureStore(tmp_path).prune(max_bytes=0)
    assert (tmp_path / "index.sqlite").exists()
