"""Large tables in several files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from nouncut.errors import InputError, OutputError
from nouncut.runs.check import check_run
from nouncut.runs.run import open_run
from nouncut.runs.writer import RunContents, RunWriter


@pytest.fixture
def contents(small_run) -> RunContents:
    """Return the contents of a run whose tables have three parts."""
    folder = small_run.directory.parent / "parts"
    folder.mkdir()
    parts = {}
    for name in ("assignments", "images"):
        table = getattr(small_run, name)
        files = [folder / f"{name}-{number}.parquet" for number in range(3)]
        for file, (start, size) in zip(files, ((0, 5), (5, 10), (15, len(table))), strict=True):
            pq.write_table(table.slice(start, size), file)
        parts[name] = files
    arrays = {name: small_run.array(name) for name in small_run.manifest["arrays"]}
    return RunContents(
        small_run.manifest,
        small_run.assignments.slice(0, 0),
        small_run.clusters,
        small_run.images.slice(0, 0),
        arrays,
        parts=parts,
    )


def write(contents, directory):
    with RunWriter(directory) as writer:
        return writer.finish(contents)


def test_parts_are_read_as_one_table(contents, small_run, tmp_path):
    run = write(contents, tmp_path / "large")
    assert run.assignments.equals(small_run.assignments)
    assert run.images.equals(small_run.images)
    assert (run.manifest["n_images"], run.manifest["n_skipped"]) == (24, 1)
    assert sorted(path.name for path in (run.directory / "images").iterdir()) == [
        f"part-0000{number}.parquet" for number in range(3)
    ]
    assert not check_run(run.directory).problems


def test_a_damaged_or_missing_part_is_named(contents, tmp_path):
    run = write(contents, tmp_path / "large")
    part = run.directory / "assignments" / "part-00001.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    assert any("part-00001" in problem for problem in check_run(run.directory).problems)
    part.unlink()
    with pytest.raises(InputError, match="part-00001"):
        open_run(run.directory)


def test_a_new_run_leaves_no_files_of_the_old_one(contents, small_run, tmp_path):
    write(contents, tmp_path / "run")
    whole = replace(contents, assignments=small_run.assignments, images=small_run.images, parts={})
    run = write(whole, tmp_path / "run")
    assert run.assignments.equals(small_run.assignments)
    assert not list(run.directory.rglob("part-*"))
    again = write(contents, tmp_path / "run")
    assert not (again.directory / "assignments.parquet").exists()
    assert again.images.equals(small_run.images)


def test_nothing_is_written_through_a_link(contents, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "manifest.json").write_text("{}")
    (tmp_path / "linked" / "images").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError):
        write(contents, tmp_path / "linked")
    assert not list((tmp_path / "elsewhere").iterdir())
