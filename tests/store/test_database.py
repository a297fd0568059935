"""Disks that are full or read-only, and files of other programs."""

import resource
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

from nouncut.errors import OutputError
from nouncut.store.database import transaction
from nouncut.store.store import FeatureStore

DIM = 256


def keys_of(numbers):
    return [f"key-{number}" for number in numbers]


def rows_of(numbers):
    """Return rows that follow from their numbers alone."""
    return np.sin(np.outer(np.asarray(numbers) + 1.0, np.arange(1, DIM + 1))).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path / "store")


def test_a_newer_format_is_refused(store):
    with sqlite3.connect(store.root / "features.sqlite") as db:
        db.execute("PRAGMA user_version = 3")
    db.close()
    with pytest.raises(OutputError, match=r"\(format 3; this one reads 2\)\. Update nouncut"):
        FeatureStore(store.root)


def test_other_programs_files_are_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "features.sqlite") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(OutputError, match="belongs to another program"):
        FeatureStore(tmp_path)
    (tmp_path / "features.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(OutputError, match=r"feature store .* is damaged .* Delete the folder"):
        FeatureStore(tmp_path)


def test_a_read_only_store_can_be_read_and_says_why_not_more(without_privileges):
    top = Path(tempfile.mkdtemp())
    try:
        store = FeatureStore(top / "store")
        store.append("s", ["k"], [[1.0]])
        for path, mode in [(top, 0o555), *((p, 0o555) for p in top.rglob("*"))]:
            path.chmod(mode if path.is_dir() else 0o444)
        with without_privileges():
            readable = FeatureStore(top / "store")
            assert readable.read("s", ["k"]).tolist() == [[1.0]]
            assert readable.check() == []
            with pytest.raises(OutputError, match=r"cannot be .*written to.*NOUNCUT_CACHE"):
                readable.append("s", ["other"], [[1.0]])
            with pytest.raises(OutputError, match=r"cannot be .*written to.*NOUNCUT_CACHE"):
                FeatureStore(top / "new")
    finally:
        for path in (top, *top.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(top)


def fill(store, batch=50):
    """Append until it fails; return how many batches were stored."""
    for number in range(10_000):
        numbers = range(number * batch, (number + 1) * batch)
        try:
            store.append("s", keys_of(numbers), rows_of(numbers))
        except OutputError:
            return number
    raise AssertionError("the disk was never full")


def still_fine(store, n_batches, batch=50):
    assert n_batches > 3
    assert store.check() == []
    numbers = range(n_batches * batch)
    assert np.array_equal(store.read("s", keys_of(numbers)), rows_of(numbers))
    assert len(store.missing("s", keys_of(range((n_batches + 1) * batch)))) == batch


def test_a_limit_on_file_size(store):
    # Python ignores the signal, so writing fails as it does on a full disk.
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, old[1]))
    try:
        n_batches = fill(store)
        with pytest.raises(
            OutputError, match=r"limit on file size .* are intact\. .*NOUNCUT_CACHE"
        ):
            store.append("s", keys_of(range(10**6, 10**6 + 50)), rows_of(range(50)))
        still_fine(store, n_batches)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    numbers = range(n_batches * 50, n_batches * 50 + 50)
    assert store.append("s", keys_of(numbers), rows_of(numbers)) == 50
    assert store.check() == []


def test_a_full_disk(small_disk):
    store = FeatureStore(small_disk / "store")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200_000))
    n_batches = fill(store)
    still_fine(store, n_batches)
    ballast.unlink()
    numbers = range(n_batches * 50, n_batches * 50 + 50)
    assert store.append("s", keys_of(numbers), rows_of(numbers)) == 50
    n_more = fill(store)
    # Pruning gives room even where there is none for noting all that is removed.
    assert store.prune(spaces=["s"]) > n_more * 50 * 1024
    assert store.append("t", keys_of(range(50)), rows_of(range(50))) == 50


def test_a_lost_folder(store):
    shutil.rmtree(store.root)
    with pytest.raises(OutputError, match="NOUNCUT_CACHE"):
        store.missing("s", ["k"])


def test_a_failed_transaction_leaves_no_lock_behind(store):
    """Not even while the error, and with it the unfinished statement, is kept."""
    kept = []

    def fail():
        with transaction(store.root, patience=0.1) as db:
            db.execute("INSERT INTO block VALUES (1, 2.0), (3, 4.0)")
            kept.append(db.execute("SELECT id FROM block"))
            raise sqlite3.OperationalError("disk I/O error")

    for _ in range(2):
        with pytest.raises(OutputError, match="disk I/O error") as caught:
            fail()
        kept.append(caught.value)
