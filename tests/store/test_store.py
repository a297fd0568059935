import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zlib
from contextlib import closing, suppress
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nouncut.errors import OutputError
from nouncut.store.store import FeatureStore, default_root, text_key

PAGE = 16_384
ROWS_PER_BLOCK = 4096


def keys_of(numbers):
    return [f"key-{number}" for number in numbers]


def rows_of(numbers, dim=8):
    """Return rows that follow from their numbers alone."""
    return np.sin(np.outer(np.asarray(numbers) + 1.0, np.arange(1, dim + 1))).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path / "store")


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
    with pytest.raises(ValueError, match=r"`out` has the shape \(3, 8\)"):
        store.read("s", keys_of(range(2)), out=out)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 7)), "holds vectors of length 8; got 7"),
        (np.ones((3, 8)), r"`rows` has the shape \(3, 8\), but 2 keys"),
        (np.ones(8), "`rows` has the shape"),
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
    with pytest.raises(ValueError, match="`dtype` must be one of"):
        store.append("half", ["k"], np.ones((1, 8)), dtype="int8")
    with pytest.raises(ValueError, match="too large for float16"):
        store.append("new", ["k"], np.full((1, 8), 7e4), dtype="float16")
    assert [space.name for space in store.spaces()] == ["half"]


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
    n_rows, dim = 20_000, 1024
    for start in range(0, n_rows, 5000):
        numbers = range(start, start + 5000)
        rows = np.repeat(np.arange(start, start + 5000, dtype=np.float32)[:, None], dim, axis=1)
        store.append("s", keys_of(numbers), rows)
    script = """
import resource, sys
import numpy as np
from nouncut.store.store import FeatureStore
store = FeatureStore(sys.argv[1])
keys = [f"key-{n}" for n in range(20_000)]
out = np.lib.format.open_memmap(sys.argv[2], "w+", np.float32, (20_000, 1024))
store.read("s", keys[:10])
# Data of this process alone: mapped files do not count, and reading is limited to 40 MB.
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + 40 * 2**20, -1))
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


def test_prune_by_space(store):
    for space in ("a", "b"):
        store.append(space, keys_of(range(2000)), rows_of(range(2000), dim=64))
    before = store.size()
    freed = store.prune(spaces=["a"])
    assert freed >= 2000 * 64 * 4
    assert store.size() == before - freed
    assert [space.name for space in store.spaces()] == ["b"]
    assert store.missing("a", keys_of(range(2))) == [0, 1]
    assert np.array_equal(store.read("b", keys_of(range(2000))), rows_of(range(2000), dim=64))
    store.append("a", ["k"], [[1.0]])
    assert store.read("a", ["k"]).tolist() == [[1.0]]
    assert store.check() == []


def fill_blocks(store, ages):
    """Fill blocks with rows of two values and set the days since their last use."""
    # Numbers are row ids, which begin at 1.
    numbers = range(1, len(ages) * ROWS_PER_BLOCK)
    store.append("s", keys_of(numbers), rows_of(numbers, dim=2))
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db, db:
        db.executemany(
            "UPDATE block SET used = strftime('%s', 'now') - ? WHERE id = ?",
            [(days * 86400, block) for block, days in enumerate(ages)],
        )


def blocks_kept(store, n_blocks):
    """Return which blocks are complete; none may be incomplete."""
    numbers = np.arange(1, n_blocks * ROWS_PER_BLOCK)
    missing = set(numbers[store.missing("s", keys_of(numbers))] // ROWS_PER_BLOCK)
    kept = sorted(set(range(n_blocks)) - missing)
    own = numbers[np.isin(numbers // ROWS_PER_BLOCK, kept)]
    assert sum(space.n_rows for space in store.spaces()) == len(own)
    if kept:
        assert np.array_equal(store.read("s", keys_of(own)), rows_of(own, dim=2))
    return kept


def test_prune_by_age_keeps_what_was_read(store):
    fill_blocks(store, ages=[50, 50, 5])
    store.read("s", keys_of([ROWS_PER_BLOCK + 7]))
    store.prune(unused_for=timedelta(days=30))
    assert blocks_kept(store, 3) == [1, 2]


def test_prune_by_size_removes_the_least_recently_used(store, tmp_path):
    fill_blocks(store, ages=[5, 50, 10])
    store.prune(max_bytes=2 * ROWS_PER_BLOCK * 8)
    assert blocks_kept(store, 3) == [0, 2]
    store.prune(max_bytes=0)
    assert store.spaces() == []
    assert store.size() == FeatureStore(tmp_path / "empty").size()


def test_a_reader_follows_when_another_process_prunes(store):
    store.append("s", keys_of(range(3)), rows_of(range(3)))
    other = FeatureStore(store.root)
    other.prune(spaces=["s"])
    other.append("s", keys_of(range(3)), rows_of(range(3)))
    assert np.array_equal(store.read("s", keys_of(range(3))), rows_of(range(3)))


def change_row(content, at):
    content[at + 5] ^= 4


def lose_sector(content, at):
    page = at // PAGE * PAGE
    content[page : page + 4096] = bytes(4096)


def change_key(content, at):
    # The file holds the key, the checksum in 4 or 6 bytes, then the data.
    content[at - 8] = 0xFF


def lose_schema(content, at):
    content[100:4096] = bytes(3996)


def cut_file(content, at):
    del content[at // PAGE * PAGE :]


@pytest.mark.parametrize(
    ("harm", "words", "most_lost"),
    [
        (change_row, "space 's': 1 row(s) are damaged", 1),
        (change_key, "space 's': 1 row(s) are damaged", 1),
        (lose_schema, "the structure of features.sqlite is damaged", 2000),
        (lose_sector, "the structure of features.sqlite is damaged", PAGE // 256),
        (cut_file, "the structure of features.sqlite is damaged", 1200),
    ],
)
def test_damage_is_found_and_repaired(store, harm, words, most_lost):
    numbers = range(2000)
    rows = rows_of(numbers, dim=64)
    store.append("s", keys_of(numbers), rows)
    path = store.root / "features.sqlite"
    content = bytearray(path.read_bytes())
    harm(content, content.index(rows[1000].tobytes()))
    path.write_bytes(content)
    store = FeatureStore(store.root)
    problems = store.check()
    assert any(problem.startswith(words) for problem in problems)
    if harm is not change_key:
        with pytest.raises(OutputError, match=r"repair\(\)"):
            store.read("s", keys_of([1000]))
    assert store.repair() == problems
    assert store.check() == []
    lost = store.missing("s", keys_of(numbers))
    assert 1000 in lost
    assert len(lost) <= most_lost
    store.append("s", keys_of(numbers), rows)
    assert np.array_equal(store.read("s", keys_of(numbers)), rows)
    assert os.listdir(store.root) == ["features.sqlite"]


def test_rows_that_were_swapped_are_damaged(store):
    store.append("s", keys_of(range(2)), rows_of(range(2)))
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db, db:
        db.execute("UPDATE vector SET key = 'x' WHERE key = 'key-0'")
    assert store.check() == ["space 's': 1 row(s) are damaged"]
    with pytest.raises(OutputError, match="damaged rows"):
        store.read("s", ["x"])


def test_a_row_of_another_space_is_damaged(store):
    for space, number in (("a", 0), ("b", 1)):
        store.append(space, ["k"], rows_of([number]))
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db, db:
        db.execute("DELETE FROM vector WHERE space = 1")
        db.execute("UPDATE vector SET space = 1")
    assert store.check() == ["space 'a': 1 row(s) are damaged"]
    with pytest.raises(OutputError, match="damaged rows"):
        store.read("a", ["k"])


def test_rows_with_checksums_of_earlier_versions_are_read(store):
    store.append("s", keys_of(range(2)), rows_of(range(2)))
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db, db:
        db.execute(
            "UPDATE vector SET checksum = ? WHERE key = 'key-0'",
            (zlib.crc32(rows_of([0]).tobytes(), zlib.crc32(b"key-0")),),
        )
    assert store.check() == []
    assert np.array_equal(store.read("s", keys_of(range(2))), rows_of(range(2)))


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE space SET dim = 'eight'",
        "UPDATE space SET dim = -8",
        "UPDATE space SET dim = 9",
        "UPDATE space SET dtype = 'float33'",
        "UPDATE space SET name = x'ff'",
        "UPDATE space SET name = CAST(x'ff' AS TEXT)",
        "UPDATE space SET id = 5",
        f"UPDATE block SET id = {2**62}",
        "UPDATE block SET used = 1e300",
        "UPDATE block SET used = 'today'",
        "UPDATE vector SET key = x'00' WHERE id = 2",
        "UPDATE vector SET data = 'text' WHERE id = 2",
        "UPDATE vector SET data = x'00' WHERE id = 2",
        "UPDATE vector SET checksum = 'none' WHERE id = 2",
        f"UPDATE vector SET id = {2**63 - 1} WHERE id = 2",
        "DROP TABLE block",
        "DROP TABLE space",
        "DROP TABLE vector",
    ],
)
def test_wrong_values_in_any_column_end_in_a_clean_store(store, harm):
    numbers = range(5)
    store.append("s", keys_of(numbers), rows_of(numbers))
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db, db:
        db.execute(harm)
    with suppress(KeyError, OutputError):
        assert np.array_equal(store.read("s", keys_of(numbers)), rows_of(numbers))
    with suppress(OutputError):
        store.spaces()
    store.repair()
    assert store.check() == []
    store.append("s", keys_of(numbers), rows_of(numbers))
    assert np.array_equal(store.read("s", keys_of(numbers)), rows_of(numbers))
    store.prune(max_bytes=0)
    assert store.spaces() == []


def test_rows_are_plain_little_endian_floats(store):
    store.append("s", ["k"], [[1.0, -2.0]])
    with closing(sqlite3.connect(store.root / "features.sqlite")) as db:
        ((data,),) = db.execute("SELECT data FROM vector")
    assert data == b"\x00\x00\x80?\x00\x00\x00\xc0"
