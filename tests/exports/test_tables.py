"""Assignments as CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nouncut.errors import OutputError
from nouncut.exports.csv_text import export_csv
from nouncut.exports.jsonl import export_jsonl
from nouncut.exports.parquet import export_parquet

EXPORTERS = [export_csv, export_jsonl, export_parquet]


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_csv_holds_every_column_of_every_image(small_run, tmp_path):
    result = export_csv(small_run, tmp_path / "a.csv")
    rows, expected = read_csv(result.path), small_run.assignments.to_pylist()
    assert result.n_written == len(rows) == len(expected)
    assert list(rows[0]) == small_run.assignments.column_names
    for row, wanted in zip(rows, expected, strict=True):
        assert row["path"] == wanted["path"]
        assert row["name"] == wanted["name"]
        assert int(row["cluster"]) == wanted["cluster"]
        assert float(row["confidence"]) == pytest.approx(wanted["confidence"], rel=1e-7)
        assert row["outlier"] == str(wanted["outlier"]).lower()


def test_csv_lines_end_as_the_standard_wants(small_run, tmp_path):
    content = export_csv(small_run, tmp_path / "a.csv").path.read_bytes()
    assert content.startswith(b"path,cluster,name,")
    assert content.endswith(b"\r\n")


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}"]
)
def test_no_text_becomes_a_formula(tmp_path, start):
    text = f"{start}cmd|' /C calc'!A0"
    run = SimpleNamespace(assignments=pa.table({"name": [text], "confidence": [-0.5]}))
    (row,) = read_csv(export_csv(run, tmp_path / "a.csv").path)
    assert row == {"name": f"'{text}", "confidence": "-0.5"}
    (line,) = export_jsonl(run, tmp_path / "a.jsonl").path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["name"] == text


def test_json_lines_hold_what_the_table_holds(small_run, tmp_path):
    result = export_jsonl(small_run, tmp_path / "a.jsonl")
    lines = result.path.read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    rows = [json.loads(line) for line in lines]
    assert result.n_written == len(rows)
    for row, wanted in zip(rows, small_run.assignments.to_pylist(), strict=True):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            assert row[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_floats_are_short_and_never_nan(tmp_path):
    values = pa.array([0.9, float("nan"), float("inf"), None], pa.float32())
    run = SimpleNamespace(assignments=pa.table({"confidence": values}))
    text = export_jsonl(run, tmp_path / "a.jsonl").path.read_text()
    assert text.splitlines() == ['{"confidence": 0.9}', *3 * ['{"confidence": null}']]
    assert [row["confidence"] for row in read_csv(export_csv(run, tmp_path / "a.csv").path)] == [
        "0.9",
        *3 * [""],
    ]


def test_parquet_is_the_table(small_run, tmp_path):
    result = export_parquet(small_run, tmp_path / "a.parquet")
    assert pq.read_table(result.path).equals(small_run.assignments)


@pytest.mark.parametrize("export", EXPORTERS)
def test_a_run_without_images(export, small_run, tmp_path):
    run = SimpleNamespace(assignments=small_run.assignments.slice(0, 0))
    assert export(run, tmp_path / "none").n_written == 0
    assert (tmp_path / "none").exists()


@pytest.mark.parametrize("export", EXPORTERS)
def test_nothing_is_overwritten_unless_asked(export, small_run, tmp_path):
    path = tmp_path / "deep" / "er" / "file"
    export(small_run, path)
    whole = path.read_bytes()
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        export(small_run, path)
    assert path.read_text() == "mine"
    export(small_run, path, overwrite=True)
    assert path.read_bytes() == whole
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("export", EXPORTERS)
def test_a_dangling_link_is_not_written_through(export, small_run, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="exists already"):
        export(small_run, tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("export", EXPORTERS)
def test_a_destination_that_cannot_be(export, small_run, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        export(small_run, tmp_path / "folder", overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        export(small_run, tmp_path / "file" / "a")
