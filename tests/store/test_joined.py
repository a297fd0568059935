from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from nouncut.store.database import transaction
from nouncut.store.joined import joined_files
from nouncut.store.store import FeatureStore

TEXTS = [f"word {n}" for n in range(50)]


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path / "store")


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(len(TEXTS), 7)).astype(np.float32)


def joined_file(store):
    (path,) = joined_files(store.root)
    return path


def test_what_was_joined_is_read(store, rows):
    store.join("space", TEXTS, rows)
    found = FeatureStore(store.root).read_joined("space", TEXTS)
    np.testing.assert_array_equal(found, rows)
    assert not found.flags.writeable


def test_other_lists_and_spaces_are_not_confused(store, rows):
    store.join("space", TEXTS, rows)
    assert store.read_joined("other", TEXTS) is None
    assert store.read_joined("space", TEXTS[::-1]) is None
    assert store.read_joined("space", TEXTS[:-1]) is None
    assert store.read_joined("space", ["word 0\0word 1", *TEXTS[2:]]) is None


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "longer"])
def test_damaged_copies_are_found_and_never_read(store, rows, damage):
    store.join("space", TEXTS, rows)
    path = joined_file(store)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    changed = {
        "flip": data,
        "cut": path.read_bytes()[:-28],
        "empty": b"",
        "longer": path.read_bytes() + bytes(28),
    }[damage]
    path.write_bytes(changed)
    assert store.check() == ["1 joined list(s) are damaged"]
    assert store.repair() == ["1 joined list(s) are damaged"]
    assert store.check() == []
    path.write_bytes(changed)
    assert store.read_joined("space", TEXTS) is None
    assert joined_files(store.root) == []


def test_size_counts_copies_and_pruning_removes_them(store, rows):
    before = store.size()
    store.join("space", TEXTS, rows)
    assert store.size() == before + rows.nbytes
    (joined_file(store).parent / "left.f32.1.nouncut-new").touch()
    assert store.prune(unused_for=timedelta(days=1)) >= rows.nbytes
    assert list((store.root / "joined").iterdir()) == []


def test_only_the_last_used_lists_are_kept(store, rows):
    for number in range(5):
        store.join(f"space {number}", TEXTS, rows)
        for age, path in enumerate(sorted(joined_files(store.root), key=os.path.getmtime)):
            os.utime(path, (time.time() - 100 + age,) * 2)
    kept = [n for n in range(5) if store.read_joined(f"space {n}", TEXTS) is not None]
    assert kept == [2, 3, 4]


def test_reading_a_copy_is_a_use_of_its_rows(store, rows):
    store.append("space", TEXTS, rows)
    store.join("space", TEXTS, rows)
    with transaction(store.root) as db:
        db.execute("UPDATE block SET used = 1000")
    os.utime(joined_file(store), (1000, 1000))
    assert store.read_joined("space", TEXTS) is not None
    assert store.spaces()[0].last_used > datetime.now(UTC) - timedelta(minutes=1)


def test_a_folder_that_cannot_be_written_to_is_no_error(store, rows):
    (store.root / "joined").write_text("in the way")
    store.join("space", TEXTS, rows)
    assert store.read_joined("space", TEXTS) is None
