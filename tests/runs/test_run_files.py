"""A run directory is not trusted: what is in it is checked before it is used."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nouncut.errors import InputError
from nouncut.runs import checksums
from nouncut.runs.check import check_run
from nouncut.runs.run import open_run

DAMAGED = "is missing or damaged .* Run the command that made the run again"


def read_all(run):
    return run.assignments, run.clusters, run.images, run.array("features")


def set_column(run, name, column, value, seal):
    """Give the first row of a table another value, with the right checksums."""
    path = run.directory / f"{name}.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    values = [value, *table[column].to_pylist()[1:]]
    changed = table.set_column(place, column, pa.array(values, table.schema.field(place).type))
    pq.write_table(changed, path)
    seal(run.directory)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("assignments", "cluster", 999),
        ("assignments", "cluster", None),
        ("assignments", "cluster", -1),
        ("assignments", "cluster", 2**31 - 1),
        ("assignments", "second_cluster", 3),
        ("assignments", "path", None),
        ("assignments", "path", "a\0b"),
        ("assignments", "name", None),
        ("assignments", "confidence", float("inf")),
        ("assignments", "confidence", -2.0),
        ("assignments", "outlier", None),
        ("clusters", "cluster", 1),
        ("clusters", "name", None),
        ("clusters", "size", -1),
        ("clusters", "size", 2**31 - 1),
        ("clusters", "exemplars", [24]),
        ("clusters", "exemplars", None),
        ("clusters", "borderline", [None]),
        ("clusters", "more_words", [None]),
        ("images", "path", None),
        ("images", "raw_path", b"a\0b"),
        ("images", "hash", "../../secret"),
        ("images", "bytes", -1),
        ("images", "row", 5),
    ],
)
def test_values_that_no_run_has(small_run, seal, table, column, value):
    set_column(small_run, table, column, value, seal)
    run = open_run(small_run.directory)
    with pytest.raises(InputError, match=rf"{table}.parquet {DAMAGED}") as raised:
        getattr(run, table)
    assert repr(column) in str(raised.value)


@pytest.mark.parametrize("name", ["features", "embedding", "graph_data"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(small_run, seal, name, value):
    path = small_run.directory / f"arrays/{name}.npy"
    array = np.load(path)
    array.reshape(-1)[-1] = value
    np.save(path, array)
    seal(small_run.directory)
    with pytest.raises(InputError, match=rf"{name}.npy {DAMAGED}"):
        open_run(small_run.directory).array(name)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("features", np.ones((23, 16), np.float32)),
        ("features", np.ones(24, np.float32)),
        ("features", np.ones((24, 16), complex)),
        ("embedding", np.ones((24, 3, 1))),
        ("graph_indices", np.ones(5, np.int32)),
        ("graph_data", np.ones((5, 5))),
        ("graph_indptr", np.ones(25)),
        ("layout", np.ones((24, 3))),
    ],
)
def test_arrays_that_do_not_fit_the_others(small_run, seal, name, array):
    np.save(small_run.directory / f"arrays/{name}.npy", array)
    names = sorted({*small_run.manifest["arrays"], name})
    files = small_run.manifest["files"] | {f"arrays/{name}.npy": ""}
    seal(small_run.directory, arrays=names, files=files)
    with pytest.raises(InputError, match=DAMAGED):
        open_run(small_run.directory)


def test_every_flipped_bit_of_a_header_is_refused_or_harmless(small_run, seal):
    path = small_run.directory / "arrays/features.npy"
    content = path.read_bytes()
    for at in range(128):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            path.write_bytes(changed)
            seal(small_run.directory)
            try:
                assert open_run(small_run.directory).array("features").shape == (24, 16)
            except InputError as error:
                assert "features.npy is missing or damaged" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "name", ["assignments.parquet", "clusters.parquet", "images.parquet", "arrays/features.npy"]
)
def test_a_flipped_bit_of_the_values_is_noticed(small_run, name):
    path = small_run.directory / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=DAMAGED):
        read_all(open_run(small_run.directory))
    assert len(check_run(small_run.directory).problems) == 1


def test_a_flipped_bit_of_the_manifest_is_noticed(small_run):
    path = small_run.directory / "manifest.json"
    content = path.read_bytes()
    temperature = b'"membership_temperature": 0.'
    assert temperature in content
    path.write_bytes(content.replace(temperature, temperature[:-2] + b"1."))
    with pytest.raises(InputError, match=r"manifest.json is missing or damaged .*checksum"):
        open_run(small_run.directory)


def test_checksums_cannot_be_left_out(small_run, seal):
    files = dict(small_run.manifest["files"])
    del files["arrays/features.npy"]
    seal(small_run.directory, files=files)
    with pytest.raises(InputError, match=r"features.npy .* does not have its checksum"):
        open_run(small_run.directory).array("features")
    path = small_run.directory / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["checksum"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="checksum is wrong"):
        open_run(small_run.directory)


def test_a_file_is_read_for_its_checksum_once(small_run, monkeypatch):
    read = []
    inner = checksums._checksum
    monkeypatch.setattr(
        checksums, "_checksum", lambda file, size: read.append(1) or inner(file, size)
    )
    checksums.forget_checksums()
    for _ in range(3):
        run = open_run(small_run.directory)
        assert len(run.assignments) == len(run.array("features")) == 24
    assert len(read) == 2


def test_checksums_of_large_files_are_made_of_blocks(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 40)

    def checksum():
        checksums.forget_checksums()
        with path.open("rb") as file:
            return checksums.file_checksum(file)

    whole = checksum()
    monkeypatch.setattr(checksums, "_BLOCK_BYTES", 1000)
    parts = checksum()
    assert parts != whole
    assert checksum() == parts
    content = bytearray(path.read_bytes())
    content[7500] ^= 1
    path.write_bytes(content)
    assert checksum() != parts


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "names.json", "edits.jsonl", "clusters.parquet", "arrays/features.npy"],
)
@pytest.mark.parametrize("kind", ["pipe", "link", "device", "folder"])
def test_only_ordinary_files_are_read(small_run, tmp_path, name, kind):
    path = small_run.directory / name
    if path.exists():
        path.rename(tmp_path / "file")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "file" if kind == "link" else "/dev/zero")
    with pytest.raises(InputError, match="is missing or damaged"):
        open_run(small_run.directory)


def test_a_folder_of_arrays_behind_a_link_is_not_read(small_run, tmp_path):
    (small_run.directory / "arrays").rename(tmp_path / "arrays")
    (small_run.directory / "arrays").symlink_to(tmp_path / "arrays")
    with pytest.raises(InputError, match=r"arrays is missing or damaged .it is a link"):
        open_run(small_run.directory)


def test_a_run_directory_may_itself_be_a_link(small_run, tmp_path):
    (tmp_path / "link").symlink_to(small_run.directory)
    assert open_run(tmp_path / "link").names == small_run.names


def test_a_check_names_every_damaged_file(small_run):
    assert check_run(small_run.directory).problems == []
    for name in ("arrays/features.npy", "arrays/embedding.npy", "images.parquet"):
        path = small_run.directory / name
        path.write_bytes(path.read_bytes()[:-1])
    found = check_run(small_run.directory)
    assert [problem.split(" ")[0].rpartition("/")[2] for problem in found.problems] == [
        "images.parquet",
        "embedding.npy",
        "features.npy",
    ]
    assert found.has_checksums


def threads_after(script):
    """Return the number of threads of a process before and after a script."""
    count = "import os; n = lambda: len(os.listdir('/proc/self/task'))"
    lines = f"{count}\nimport nouncut.runs.run\nprint(n())\n{script}\nprint(n())"
    ended = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True
    )
    return [int(number) for number in ended.stdout.split()]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_tables_are_read_without_threads(small_run):
    # Threads of Arrow that outlive the reading ended some processes with SIGABRT.
    script = f"run = nouncut.open_run({str(small_run.directory)!r}); run.clusters; run.images"
    before, after = threads_after(script)
    assert after == before
