import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nouncut.errors import OutputError
from nouncut.store import shards
from nouncut.store import writing
from nouncut.store.keys import text_key
from nouncut.store.place import default_root
from nouncut.store.store import FeatureStore


def keys_of(numbers):
    return [f"key-{number}" for number in numbers]


def rows_of(numbers, dim=8):
    """Return rows that follow from their numbers alone."""
    return np.sin(np.outer(np.asarray(numbers) + 1.0, np.arange(1, dim + 1))).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path / "store")


@pytest.fixture
def small_shards(monkeypatch):
    """Let a shard be full after ten rows of eight floats."""
    monkeypatch.setattr(writing, "SHARD_BYTES", 320)


def shard_files(store):
    return sorted((store.root / "shards").iterdir())


def test_what_is_appended_is_read_in_any_order(store):
    assert store.missing("s", keys_of(range(3))) == [0, 1, 2]
    assert store.append("s", keys_of(range(5)), rows_of(range(5))) == 5
    assert store.append("s", keys_of(range(3, 9)), rows_of(range(3, 9))) == 4
    assert store.missing("s", keys_of([8, 9, 0, 10, 9])) == [1, 3]
    order = [7, 0, 7, 8, 3]
    read = FeatureStore(store.root).read("s", keys_of(order))
    assert read.dtype == np.float32
    assert np.array_equal(read, rows_of(order))


def test_spaces_do_not_mix(store):
    store.append("a", ["k"], [[1.0]])
    store.append("b", ["k"], [[2.0, 3.0]])
    assert store.read("a", ["k"]).tolist() == [[1.0]]
    assert store.read("b", ["k"]).tolist() == [[2.0, 3.0]]


def test_the_first_row_of_a_key_stays(store):
    assert store.append("s", ["k", "k"], [[1.0], [2.0]]) == 1
    assert store.append("s", ["k"], [[3.0]]) == 0
    assert store.read("s", ["k"]).tolist() == [[1.0]]


def test_nothing_is_nothing(store):
    assert store.append("s", [], np.empty((0, 4))) == 0
    assert store.missing("s", []) == []
    assert store.spaces() == []
    store.append("s", ["k"], [[1.0, 2.0]])
    assert store.read("s", []).shape == (0, 2)


def test_missing_keys_are_named(store):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    with pytest.raises(KeyError, match=r"2 of 3 keys are not stored in space 's': key-7, key-8"):
        store.read("s", keys_of([7, 0, 8]))
    with pytest.raises(KeyError, match="not stored in space 'other'"):
        store.read("other", ["k"])


def test_rows_can_go_to_a_given_array(store, tmp_path):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    out = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (3, 8))
    assert store.read("s", keys_of(range(3)), out=out) is out
    assert np.array_equal(np.load(tmp_path / "x.npy"), rows_of(range(3)))
    with pytest.raises(ValueError, match=r"out has the shape \(3, 8\)"):
        store.read("s", keys_of(range(2)), out=out)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 7)), "holds vectors of length 8; got 7"),
        (np.ones((3, 8)), r"rows has the shape \(3, 8\), but 2 keys"),
        (np.ones(8), "rows has the shape"),
        (np.ones((2, 0)), "no columns"),
        (np.array([[1.0] * 8, [np.nan] * 8]), "1 of 2 rows hold NaN.*'key-8'"),
        (np.full((2, 8), np.inf), "2 of 2 rows hold NaN or infinite"),
        (np.full((2, 8), 1e300), "too large for float32"),
    ],
)
def test_unfit_rows_are_refused_and_nothing_is_kept(store, rows, message):
    store.append("s", keys_of([0]), rows_of([0]))
    with pytest.raises(ValueError, match=message):
        store.append("s", keys_of([7, 8]), rows)
    assert store.missing("s", keys_of([7, 8])) == [0, 1]
    assert store.check() == []
    assert np.array_equal(store.read("s", keys_of([0])), rows_of([0]))


def test_half_precision(store):
    store.append("half", keys_of(range(5)), rows_of(range(5)), dtype="float16")
    assert np.array_equal(
        store.read("half", keys_of(range(5))), rows_of(range(5)).astype(np.float16)
    )
    store.append("half", keys_of([9]), rows_of([9]))
    (space,) = store.spaces()
    assert (space.dtype, space.n_rows, space.n_bytes, space.dim) == ("float16", 6, 96, 8)
    with pytest.raises(ValueError, match="up to 70000, too large for float16"):
        store.append("half", ["k"], np.full((1, 8), 7e4))
    with pytest.raises(ValueError, match="is stored as float16, not float32"):
        store.append("half", ["k"], np.ones((1, 8)), dtype="float32")
    with pytest.raises(ValueError, match="dtype must be one of"):
        store.append("half", ["k"], np.ones((1, 8)), dtype="int8")
    with pytest.raises(ValueError, match="too large for float16"):
        store.append("new", ["k"], np.full((1, 8), 7e4), dtype="float16")
    assert [space.name for space in store.spaces()] == ["half"]


@pytest.mark.usefixtures("small_shards")
def test_rows_spread_over_shards(store):
    store.append("s", keys_of(range(25)), rows_of(range(25)))
    store.append("s", keys_of(range(25, 28)), rows_of(range(25, 28)))
    assert [path.stat().st_size // 32 for path in shard_files(store)] == [10, 10, 8]
    order = np.random.default_rng(0).permutation(28)
    assert np.array_equal(store.read("s", keys_of(order)), rows_of(order))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "read", "missing", "prune", "reopen"]),
            st.sampled_from(["a", "b"]),
            st.lists(st.integers(0, 30), max_size=25),
        ),
        max_size=8,
    )
)
@pytest.mark.usefixtures("small_shards")
def test_the_store_is_a_dict_on_disk(steps):
    with tempfile.TemporaryDirectory() as folder:
        store, model = FeatureStore(folder), {"a": {}, "b": {}}
        for step, space, numbers in steps:
            keys, known = keys_of(numbers), model[space]
            if step == "append":
                rows = rows_of(numbers)
                assert store.append(space, keys, rows) == len(set(keys) - set(known))
                for key, row in zip(keys, rows, strict=True):
                    known.setdefault(key, row)
            elif step == "prune":
                store.prune(spaces=[space])
                known.clear()
            elif step == "reopen":
                store = FeatureStore(folder)
            elif step == "missing":
                expected = {keys.index(key) for key in keys if key not in known}
                assert store.missing(space, keys) == sorted(expected)
            elif set(keys) <= set(known) and known:
                expected = np.array([known[key] for key in keys]).reshape(-1, 8)
                assert np.array_equal(store.read(space, keys), expected)
            else:
                with pytest.raises(KeyError):
                    store.read(space, keys or ["none"])
        assert store.check() == []
        assert {s.name: s.n_rows for s in store.spaces()} == {
            name: len(known) for name, known in model.items() if known
        }


def test_odd_keys(store):
    keys = ["", "ü", "a'b", "%", "a\0b", "a", "A", "  a", "1", "x" * 5000]
    store.append("a'; --", keys, np.arange(len(keys))[:, None])
    assert store.read("a'; --", keys[::-1]).ravel().tolist() == list(range(len(keys)))[::-1]
    assert text_key("Ü") != text_key("ü")


def test_threads_share_a_store(store):
    def work(first):
        numbers = range(first, first + 30)
        for number in numbers:
            store.append("s", keys_of([number]), rows_of([number]))
            store.read("s", keys_of([number]))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 15, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(store.read("s", keys_of(range(60))), rows_of(range(60)))
    assert store.spaces()[0].n_bytes == 60 * 32


def test_the_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "mine"))
    assert default_root() == FeatureStore().root == tmp_path / "mine" / "features"
    monkeypatch.delenv("NOUNCUT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert "nouncut" in default_root().parts


def test_reading_takes_no_more_memory_than_the_result(tmp_path):
    store = FeatureStore(tmp_path / "large")
    n_rows, dim = 40_000, 1024
    for start in range(0, n_rows, 10_000):
        numbers = range(start, start + 10_000)
        rows = np.repeat(np.arange(start, start + 10_000, dtype=np.float32)[:, None], dim, axis=1)
        store.append("s", keys_of(numbers), rows)
    script = """
import resource, sys
import numpy as np
from nouncut.features import FeatureStore
store = FeatureStore(sys.argv[1])
keys = [f"key-{n}" for n in range(40_000)]
out = np.lib.format.open_memmap(sys.argv[2], "w+", np.float32, (40_000, 1024))
store.read("s", keys[:10])
# Data of this process alone: mapped files do not count, and reading is limited to 100 MB.
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + 100 * 2**20, -1))
store.read("s", keys, out=out)
print(int(out[:, 0].sum()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, store.root, tmp_path / "out.npy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(int(np.arange(n_rows, dtype=np.float32).sum())), done.stderr


def test_a_newer_format_is_refused(store):
    with sqlite3.connect(store.root / "index.sqlite") as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(OutputError, match=r"newer nouncut \(format 2; .*Update nouncut"):
        FeatureStore(store.root)


def test_an_older_format_is_refused(store):
    with sqlite3.connect(store.root / "index.sqlite") as db:
        db.execute("PRAGMA user_version = 0")
    db.close()
    with pytest.raises(OutputError, match=r"older nouncut.*Delete the folder"):
        FeatureStore(store.root)


def test_other_programs_files_are_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "index.sqlite") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(OutputError, match="belongs to another program"):
        FeatureStore(tmp_path)
    (tmp_path / "index.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(OutputError, match=r"index of the feature store .* is damaged"):
        FeatureStore(tmp_path)


@contextmanager
def without_privileges():
    """Give up what the superuser may do, for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_store_can_be_read_and_says_why_not_more():
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
            with pytest.raises(OutputError, match=r"cannot be opened or written.*NOUNCUT_CACHE"):
                readable.append("s", ["other"], [[1.0]])
            with pytest.raises(OutputError, match=r"cannot be opened or written.*NOUNCUT_CACHE"):
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
            store.append("s", keys_of(numbers), rows_of(numbers, dim=256))
        except OutputError:
            return number
    raise AssertionError("the disk was never full")


def still_fine(store, n_batches, batch=50):
    assert n_batches > 3
    assert store.check() == []
    numbers = range(n_batches * batch)
    assert np.array_equal(store.read("s", keys_of(numbers)), rows_of(numbers, dim=256))
    assert len(store.missing("s", keys_of(range((n_batches + 1) * batch)))) == batch


def test_a_limit_on_file_size(store):
    # Python ignores the signal, so writing fails as it does on a full disk.
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, old[1]))
    try:
        n_batches = fill(store)
        with pytest.raises(
            OutputError, match=r"No room left .* earlier is intact. .*NOUNCUT_CACHE"
        ):
            store.append("s", keys_of(range(10**6, 10**6 + 50)), rows_of(range(50), dim=256))
        still_fine(store, n_batches)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    numbers = range(n_batches * 50, n_batches * 50 + 50)
    assert store.append("s", keys_of(numbers), rows_of(numbers, dim=256)) == 50
    assert store.check() == []


@contextmanager
def small_disk(folder):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount command")
def test_a_full_disk(tmp_path):
    with small_disk(tmp_path / "disk") as is_mounted:
        if not is_mounted:
            pytest.skip("mounting is not permitted; the limit on file size is tested instead")
        store = FeatureStore(tmp_path / "disk" / "store")
        ballast = tmp_path / "disk" / "ballast"
        ballast.write_bytes(bytes(200_000))
        n_batches = fill(store)
        still_fine(store, n_batches)
        ballast.unlink()
        numbers = range(n_batches * 50, n_batches * 50 + 50)
        assert store.append("s", keys_of(numbers), rows_of(numbers, dim=256)) == 50
        n_more = fill(store)
        # Pruning gives room even where there is none for noting all that is removed.
        assert store.prune(spaces=["s"]) > n_more * 50 * 1024
        assert store.append("t", keys_of(range(50)), rows_of(range(50), dim=256)) == 50


def test_prune_by_space(store):
    for space in ("a", "b"):
        store.append(space, keys_of(range(100)), rows_of(range(100)))
    before = store.size()
    freed = store.prune(spaces=["a"])
    assert freed >= 3200
    assert store.size() == before - freed
    assert [space.name for space in store.spaces()] == ["b"]
    assert store.missing("a", keys_of(range(2))) == [0, 1]
    assert len(shard_files(store)) == 1
    store.append("a", ["k"], [[1.0]])
    assert store.read("a", ["k"]).tolist() == [[1.0]]
    assert store.check() == []


def set_age(store, shard, days):
    with sqlite3.connect(store.root / "index.sqlite") as db:
        db.execute(
            "UPDATE shard SET used = strftime('%s', 'now') - ? WHERE id = ?", (days * 86400, shard)
        )
    db.close()


@pytest.mark.usefixtures("small_shards")
def test_prune_by_age_and_reading_keeps_young(store):
    store.append("s", keys_of(range(30)), rows_of(range(30)))
    for shard, days in ((1, 50), (2, 50), (3, 5)):
        set_age(store, shard, days)
    store.read("s", keys_of([15]))
    store.prune(unused_for=timedelta(days=30))
    assert store.missing("s", keys_of(range(30))) == list(range(10))
    assert np.array_equal(store.read("s", keys_of(range(10, 30))), rows_of(range(10, 30)))


@pytest.mark.usefixtures("small_shards")
def test_prune_by_size_takes_the_oldest(store):
    store.append("s", keys_of(range(30)), rows_of(range(30)))
    for shard, days in ((1, 5), (2, 50), (3, 10)):
        set_age(store, shard, days)
    store.prune(max_bytes=700)
    assert store.missing("s", keys_of(range(30))) == list(range(10, 20))
    store.prune(max_bytes=0)
    assert store.spaces() == []
    assert shard_files(store) == []


def test_prune_removes_leftovers_only(store):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    (path,) = shard_files(store)
    with path.open("ab") as file:
        file.write(bytes(1000))
    (path.parent / "00000099.rows").write_bytes(bytes(500))
    assert store.check() == []
    assert store.prune() == 1500
    assert np.array_equal(store.read("s", keys_of(range(3))), rows_of(range(3)))


def test_a_prune_that_was_killed_half_way_is_finished_later(store):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    store.append("t", keys_of(range(3)), rows_of(range(3)))
    with sqlite3.connect(store.root / "index.sqlite") as db:
        db.execute("DELETE FROM shard WHERE id = 1")
    db.close()
    assert store.check() == []
    assert [space.name for space in store.spaces()] == ["t"]
    assert store.missing("s", keys_of(range(3))) == [0, 1, 2]
    store.append("s", keys_of([1]), rows_of([1]))
    store.prune()
    assert store.missing("s", keys_of(range(3))) == [0, 2]
    assert np.array_equal(store.read("s", keys_of([1])), rows_of([1]))
    assert len(shard_files(store)) == 2


def test_a_reader_follows_when_another_process_prunes(store):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    other = FeatureStore(store.root)
    other.prune(spaces=["s"])
    other.append("s", keys_of(range(3)), rows_of(range(3)))
    assert np.array_equal(store.read("s", keys_of(range(3))), rows_of(range(3)))


def damage_bit(path):
    content = bytearray(path.read_bytes())
    content[40] ^= 4
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("harm", "lost", "words"),
    [
        (damage_bit, [1], r"1 row\(s\) of shard 1 are damaged \(wrong checksum\): 1"),
        (cut, [8, 9], r"2 row\(s\) of shard 1 are damaged \(the file ends before them\): 8, 9"),
        (Path.unlink, list(range(10)), "the file cannot be read"),
    ],
)
def test_damage_is_found_and_repaired(store, harm, lost, words):
    store.append("s", keys_of(range(10)), rows_of(range(10)))
    store.append("t", keys_of(range(10)), rows_of(range(10)))
    harm(shard_files(store)[0])
    with pytest.raises(OutputError, match=r"repair\(\)"):
        store.read("s", keys_of(lost))
    (problem,) = store.check()
    assert re.search(words, problem)
    # Growing a damaged file must not hide the damage.
    store.append("s", keys_of([50]), rows_of([50]))
    assert store.check() == [problem]
    assert store.repair() == [problem]
    assert store.check() == []
    assert store.missing("s", keys_of(range(10))) == lost
    store.append("s", keys_of(range(10)), rows_of(range(10)))
    for space in ("s", "t"):
        assert np.array_equal(store.read(space, keys_of(range(10))), rows_of(range(10)))


def test_values_that_are_not_finite_are_found(store, monkeypatch):
    monkeypatch.setattr(writing, "encode_rows", lambda rows, dtype: rows * np.float32(np.nan))
    store.append("s", keys_of([0]), rows_of([0]))
    assert "NaN or infinite values" in store.check()[0]


def test_a_damaged_index_is_told(store):
    store.append("s", keys_of(range(3000)), rows_of(range(3000)))
    index = store.root / "index.sqlite"
    content = bytearray(index.read_bytes())
    content[8192:40000] = os.urandom(40000 - 8192)
    index.write_bytes(content)
    (problem, *_) = store.check()
    assert "index" in problem


def test_a_lost_folder_is_told(store):
    shutil.rmtree(store.root)
    with pytest.raises(OutputError, match="NOUNCUT_CACHE"):
        store.missing("s", ["k"])


def test_rows_are_plain_little_endian_floats(store):
    store.append("s", ["k"], [[1.0, -2.0]])
    assert shards.shard_path(store.root, 1).read_bytes() == b"\x00\x00\x80?\x00\x00\x00\xc0"
