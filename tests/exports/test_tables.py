from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nouncut.errors import OutputError
from nouncut.exports.registry import export_run
from nouncut.exports.tables import check_table_file, write_table_file

FORMATS = ["csv", "jsonl", "parquet"]


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_csv_holds_every_column_of_every_image(shared_run, tmp_path):
    result = export_run(shared_run, "csv", tmp_path / "a.csv")
    rows, expected = read_csv(result.path), shared_run.assignments.to_pylist()
    assert result.n_written == len(rows) == len(expected)
    assert list(rows[0]) == shared_run.assignments.column_names
    for row, wanted in zip(rows, expected, strict=True):
        assert row["path"] == wanted["path"]
        assert row["name"] == wanted["name"]
        assert int(row["cluster"]) == wanted["cluster"]
        assert float(row["confidence"]) == pytest.approx(wanted["confidence"], rel=1e-7)
        assert row["outlier"] == str(wanted["outlier"]).lower()


def test_the_bytes_of_csv(tmp_path):
    table = pa.table(
        {
            "name": ["plain", 'a "quote"', "a,b", "two\nlines", "café \N{CAT FACE}", "", None],
            "confidence": pa.array([0.9, 1, 1e-9, 0.1, -0.5, float("nan"), None], pa.float32()),
            "outlier": [True, False, None, True, True, True, True],
        }
    )
    write_table_file(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes().decode("utf-8") == (
        "name,confidence,outlier\r\n"
        "plain,0.9,true\r\n"
        '"a ""quote""",1.0,false\r\n'
        '"a,b",1e-09,\r\n'
        '"two\nlines",0.1,true\r\n'
        "café \N{CAT FACE},-0.5,true\r\n"
        ",,true\r\n"
        ",,true\r\n"
    )


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}"]
)
def test_no_text_becomes_a_formula(tmp_path, start):
    text = f"{start}cmd|' /C calc'!A0"
    table = pa.table({"name": [text], "confidence": [-0.5]})
    write_table_file(table, tmp_path / "a.csv")
    assert read_csv(tmp_path / "a.csv") == [{"name": f"'{text}", "confidence": "-0.5"}]
    write_table_file(table, tmp_path / "a.jsonl")
    (line,) = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["name"] == text


def test_json_lines_hold_what_the_table_holds(shared_run, tmp_path):
    result = export_run(shared_run, "jsonl", tmp_path / "a.jsonl")
    lines = result.path.read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    rows = [json.loads(line) for line in lines]
    assert result.n_written == len(rows)
    for row, wanted in zip(rows, shared_run.assignments.to_pylist(), strict=True):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            assert row[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_floats_in_json_are_short_and_never_nan(tmp_path):
    values = pa.array([0.9, float("nan"), float("inf"), None], pa.float32())
    write_table_file(pa.table({"confidence": values}), tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert lines == ['{"confidence": 0.9}', *3 * ['{"confidence": null}']]


def test_parquet_is_the_table(shared_run, tmp_path):
    result = export_run(shared_run, "parquet", tmp_path / "a.parquet")
    assert pq.read_table(result.path).equals(shared_run.assignments)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_table_without_rows(shared_run, tmp_path, file_format):
    path = tmp_path / f"none.{file_format}"
    write_table_file(shared_run.assignments.slice(0, 0), path)
    header = ",".join(shared_run.assignments.column_names) + "\r\n"
    if file_format == "parquet":
        assert pq.read_table(path).equals(shared_run.assignments.slice(0, 0))
    else:
        assert path.read_bytes().decode() == (header if file_format == "csv" else "")


@pytest.mark.parametrize("file_format", FORMATS)
def test_nothing_is_overwritten_unless_asked(shared_run, tmp_path, file_format):
    path = tmp_path / "deep" / "er" / "any name"
    export_run(shared_run, file_format, path)
    whole = path.read_bytes()
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        export_run(shared_run, file_format, path)
    assert path.read_text() == "mine"
    export_run(shared_run, file_format, path, overwrite=True)
    assert path.read_bytes() == whole
    assert list(path.parent.iterdir()) == [path]


def test_the_suffix_names_the_format(shared_run, tmp_path):
    for name in ("table.xlsx", "csv", ".csv"):
        with pytest.raises(OutputError, match=r"\.csv, \.jsonl or \.parquet"):
            check_table_file(tmp_path / name)
    path = tmp_path / "table.CSV"
    check_table_file(path)
    write_table_file(shared_run.assignments, path)
    assert len(read_csv(path)) == len(shared_run.labels)
    for refused in (check_table_file, lambda path: write_table_file(shared_run.assignments, path)):
        with pytest.raises(OutputError, match="`overwrite=True`"):
            refused(path)
    check_table_file(path, overwrite=True)
    write_table_file(shared_run.assignments.slice(0, 3), path, overwrite=True)
    assert len(read_csv(path)) == 3


def test_no_character_of_a_csv_file_commands_a_terminal(write_run, tmp_path):
    names = ["\x1b[2Jcat", "bell\x07", "c1 \x9b31m", "two\nlines\tand é"]
    run = write_run([f"/{n}.jpg" for n in range(4)], [0, 1, 2, 3], names)
    result = export_run(run, "csv", tmp_path / "a.csv")
    content = result.path.read_text(encoding="utf-8")
    assert not any(c != "\n" and c != "\t" and not c.isprintable() for c in content)
    assert r"\x1b[2Jcat" in content
    assert r"c1 \x9b31m" in content
    assert "two\nlines\tand é" in content
