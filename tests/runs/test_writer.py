"""Writing runs."""

import json
import os
import re
import resource
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nouncut import __version__
from nouncut.compute.files import temporary_path
from nouncut.errors import InputError, NouncutError, OutputError
from nouncut.runs.manifest import encode_manifest
from nouncut.runs.run import open_run
from nouncut.runs.writer import RunContents, RunWriter, write_array


@pytest.fixture
def contents(small_run) -> RunContents:
    """Return what `small_run` consists of, with larger features."""
    return RunContents(
        {"source_kind": "images"},
        small_run.assignments,
        small_run.clusters,
        small_run.images,
        {"features": np.ones((24, 50_000), dtype=np.float32)},
    )


def snapshot(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_manifest_is_completed(small_run):
    text = (small_run.directory / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["format"] == 1
    assert manifest["nouncut"] == __version__
    assert manifest["status"] == "complete"
    assert (manifest["n_images"], manifest["n_clusters"], manifest["n_skipped"]) == (24, 3, 1)
    started, finished = (datetime.fromisoformat(manifest[key]) for key in ("started", "finished"))
    assert started <= finished
    assert started.utcoffset().total_seconds() == 0


def test_a_manifest_is_strict_json():
    odd = {
        "nan": float("nan"),
        "list": [np.inf, np.float32(0.5), np.int64(3), (1, 2)],
        "array": np.array([[1.0, np.nan]]),
        "path": Path("a\udce9"),
        "none": None,
        "yes": np.True_,
        3: {"b", "a"},
        '"\n<': "\N{CAT FACE}",
    }

    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads(encode_manifest(odd).decode("utf-8"), parse_constant=refuse)
    assert len(read.pop("checksum")) == 32
    assert read == {
        "nan": None,
        "list": [None, 0.5, 3, [1, 2]],
        "array": [[1.0, None]],
        "path": "a\N{REPLACEMENT CHARACTER}",
        "none": None,
        "yes": True,
        "3": ["a", "b"],
        '"\n<': "\N{CAT FACE}",
    }


def test_starting_says_so_where_there_is_no_finished_run(tmp_path):
    with RunWriter(tmp_path / "deep" / "run") as writer:
        writer.start({"command": "nouncut cluster pets"})
        with pytest.raises(InputError, match="unfinished"):
            open_run(tmp_path / "deep" / "run")
    manifest = json.loads((tmp_path / "deep/run/manifest.json").read_text())
    assert manifest["status"] == "running"
    assert manifest["command"] == "nouncut cluster pets"


def test_a_finished_run_stays_readable_until_the_next_is_there(small_run, contents):
    small_run.report.write_text("old")
    with RunWriter(small_run.directory) as writer:
        writer.start(contents.manifest)
        assert open_run(small_run.directory).manifest == small_run.manifest
        run = writer.finish(contents)
        assert run.array("features").shape == (24, 50_000)
    assert not run.has_array("embedding")
    assert not run.report.exists()
    assert run.manifest["id"] != small_run.manifest["id"]
    names = {path.name for path in run.directory.iterdir()}
    tables = {"assignments.parquet", "clusters.parquet", "images.parquet"}
    assert names == {"arrays", "manifest.json", "run.lock"} | tables


def test_files_of_others_in_a_run_are_left_alone(small_run, contents):
    notes = small_run.directory / "notes.new"
    notes.write_text("mine")
    with RunWriter(small_run.directory) as writer:
        writer.finish(contents)
    assert notes.read_text() == "mine"


def test_a_failure_in_between_leaves_the_old_run(small_run, contents):
    before = snapshot(small_run.directory)
    bad = replace(contents, arrays=contents.arrays | {"z": np.array([{}], dtype=object)})
    with RunWriter(small_run.directory) as writer:
        with pytest.raises(ValueError, match="never pickled"):
            writer.finish(bad)
        with pytest.raises(ValueError, match="cannot be the name of an array"):
            writer.finish(replace(contents, arrays={"../x": np.ones(3)}))
        with pytest.raises(ValueError, match="no column 'cohesion'"):
            writer.finish(replace(contents, clusters=contents.clusters.drop_columns("cohesion")))
    with pytest.raises(KeyboardInterrupt), RunWriter(small_run.directory):
        raise KeyboardInterrupt
    assert snapshot(small_run.directory) == before
    with RunWriter(small_run.directory) as writer:
        with pytest.raises(ValueError, match="never pickled"):
            writer.finish(bad)
        assert writer.finish(contents).has_array("features")


def test_columns_are_cast(small_run, contents):
    columns = contents.assignments
    position = columns.schema.get_field_index("second_cluster")
    columns = columns.set_column(position, "second_cluster", pa.nulls(24))
    with RunWriter(small_run.directory) as writer:
        run = writer.finish(replace(contents, assignments=columns))
    assert run.assignments.schema.field("second_cluster").type == pa.int32()
    assert run.assignments["second_cluster"].null_count == 24


@pytest.mark.parametrize("name", ["thesis.doc", "photos", "arrays/precious.npy"])
def test_a_directory_with_other_things_is_refused(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    expected = rf"holds other files \({name.split('/')[0]}, ...\) but no run. .*`output`"
    with pytest.raises(OutputError, match=expected), RunWriter(tmp_path):
        pass
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] in ([name], [])


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ('{"name": "an app"}', "not one of nouncut"),
        ('{"format": 99, "status": "complete"}', "Update nouncut"),
        ("{", "cannot be read"),
    ],
)
def test_other_manifests_are_not_written_over(tmp_path, manifest, message):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(OutputError, match=rf"{message}.*`output`"), RunWriter(tmp_path):
        pass
    assert snapshot(tmp_path) == {tmp_path / "manifest.json": manifest.encode()}


def test_arrays_behind_a_link_are_not_deleted(small_run, tmp_path):
    shutil.move(small_run.directory / "arrays", tmp_path / "elsewhere")
    (small_run.directory / "arrays").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"arrays is a link or a device. .*`output`"):
        RunWriter(small_run.directory).__enter__()
    assert len(list((tmp_path / "elsewhere").iterdir())) == 5


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_the_way(tmp_path, name):
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(OutputError, match=rf"{name} cannot be used.*`output`"),
        RunWriter(tmp_path / name),
    ):
        pass
    assert (tmp_path / "file").read_text() == "mine"


def test_two_writers_in_one_process(tmp_path):
    with (
        RunWriter(tmp_path) as writer,
        pytest.raises(OutputError, match="Another process is writing"),
    ):
        RunWriter(tmp_path).__enter__()
    with RunWriter(tmp_path), pytest.raises(OutputError), RunWriter(tmp_path):
        pass
    with writer:
        pass


def test_a_read_only_run_can_be_read_and_says_why_not_more(small_run, without_privileges):
    top = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(small_run.directory, top / "run")
        for path in (top, *top.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with without_privileges():
            assert open_run(top / "run").array("features").shape == (24, 16)
            for place in (top / "run", top / "new"):
                with (
                    pytest.raises(OutputError, match=r"cannot be written to .*`output`"),
                    RunWriter(place),
                ):
                    pass
    finally:
        for path in (top, *top.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(top)


@contextmanager
def limited_files(n_bytes):
    # Python ignores the signal, so writing fails as it does on a full disk.
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("n_bytes", [0, 1000, 100_000])
def test_files_that_may_not_grow(small_run, contents, n_bytes):
    before = snapshot(small_run.directory)
    with (
        limited_files(n_bytes),
        pytest.raises(OutputError, match=r"No room left .* intact. Free some space.*`output`"),
        RunWriter(small_run.directory) as writer,
    ):
        writer.finish(contents)
    assert snapshot(small_run.directory) == before
    with RunWriter(small_run.directory) as writer:
        writer.finish(contents)


def test_a_full_disk(contents, small_disk):
    first = replace(contents, arrays={"features": np.zeros((24, 200))})
    second = replace(contents, arrays={"features": np.ones((24, 200))})
    directory = small_disk / "run"
    with RunWriter(directory) as writer:
        writer.finish(first)
    before = snapshot(directory)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(directory).free))
    # A little more room every time, so that it ends before each of the files in turn.
    n_failed = 0
    while True:
        try:
            with RunWriter(directory) as writer:
                run = writer.finish(second)
            break
        except NouncutError as error:
            assert re.search(r"No room left .* intact", str(error))  # noqa: PT017
        n_failed += 1
        assert snapshot(directory) == before
        os.truncate(ballast, ballast.stat().st_size - 4096)
    assert n_failed > 10
    assert np.all(run.array("features") == 1)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.bool_, "<U3", ">f4"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=None,
    ),
    st.booleans(),
)
def test_arrays_survive(array, is_transposed):
    original = array.T if is_transposed else array
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.npy")
        write_array(path, original)
        read = np.load(temporary_path(path), mmap_mode="r", allow_pickle=False)
        assert read.dtype == original.dtype
        assert read.shape == original.shape
        assert read.tobytes() == original.tobytes()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_that_is_none_is_not_written_to(small_run, tmp_path, kind):
    (tmp_path / "precious").write_text("mine")
    lock = small_run.directory / "run.lock"
    lock.unlink(missing_ok=True)
    if kind == "link":
        lock.symlink_to(tmp_path / "precious")
    else:
        os.mkfifo(lock)
    with pytest.raises(OutputError, match=r"run.lock is a link or a device. .*`output`"):
        RunWriter(small_run.directory).__enter__()
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("content", ["names of another run", "not JSON"])
def test_names_of_another_run_are_set_aside(small_run, contents, content):
    names = small_run.directory / "names.json"
    names.write_text('{"format": 1, "run": "another", "names": {"0": "My dogs"}}')
    if content == "not JSON":
        names.write_text("{")
    kept = names.read_bytes()
    with RunWriter(small_run.directory) as writer:
        run = writer.finish(contents)
    assert run.edits == ()
    assert not names.exists()
    assert (small_run.directory / "earlier-names.json").read_bytes() == kept


def test_a_manifest_that_waits_may_be_crafted(small_run):
    waiting = {"format": 1, "status": "complete", "id": "x", "arrays": ["../../secret"]}
    path = small_run.directory / "complete-manifest.json.1.nouncut-new"
    path.write_text(json.dumps(waiting))
    (small_run.directory / "manifest.json").write_text(json.dumps(waiting | {"status": "running"}))
    with RunWriter(small_run.directory):
        assert not path.exists()
    with pytest.raises(InputError, match="'arrays' is not what it should be"):
        open_run(small_run.directory)


def test_a_damaged_manifest_can_be_replaced(small_run, contents):
    path = small_run.directory / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"n_images": 24', b'"n_images": 25'))
    with RunWriter(small_run.directory) as writer:
        writer.start({})
        assert len(writer.finish(contents).images) == 25
