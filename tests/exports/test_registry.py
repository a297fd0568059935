from __future__ import annotations

from typing import get_args

import pytest

from nouncut.cli.export import Format
from nouncut.errors import OutputError, ParameterError
from nouncut.exports.registry import EXPORTS, export_run, plan_export

NEED_IMAGE_FILES = {"tree", "fiftyone", "xmp"}


def files_in(folder):
    return {path for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("to", EXPORTS)
def test_the_plan_is_what_is_written(shared_run, tmp_path, to):
    output = tmp_path / "mine" / f"export of {EXPORTS[to].file_name}"
    plan = plan_export(shared_run, to, output)
    assert files_in(tmp_path) == set()
    result = export_run(shared_run, to, str(output))
    assert result.path == output
    assert result.n_written > 0
    assert files_in(tmp_path) == {target for _, target in plan}


def test_exports_are_in_the_run_by_default(small_run, tmp_path):
    before = files_in(tmp_path)
    plans = [plan_export(small_run, to) for to in EXPORTS]
    for to in EXPORTS:
        folder = small_run.directory / "exports"
        assert export_run(small_run, to).path == folder / EXPORTS[to].file_name
    assert files_in(tmp_path) - before == {target for plan in plans for _, target in plan}


def test_a_run_of_a_features_file(make_run, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    for to in NEED_IMAGE_FILES:
        with pytest.raises(OutputError, match="csv, jsonl or parquet"):
            export_run(run, to)
    assert not (run.directory / "exports").exists()
    for to in EXPORTS.keys() - NEED_IMAGE_FILES:
        assert export_run(run, to).n_written == len(run.labels)


@pytest.mark.parametrize("to", EXPORTS)
def test_a_file_in_the_way_is_named(shared_run, tmp_path, to):
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "map.parquet"):
        with pytest.raises(OutputError, match="`output`"):
            export_run(shared_run, to, output)
    assert (tmp_path / "file").read_text() == "mine"


def test_unknown_formats_and_options_are_refused(shared_run):
    with pytest.raises(ParameterError, match="`to` must be one of csv, jsonl"):
        export_run(shared_run, "xls")
    with pytest.raises(ParameterError, match="The export to csv has no option `link`"):
        export_run(shared_run, "csv", link="copy")
    with pytest.raises(ParameterError, match="The export to tree has no option `overwrite`"):
        plan_export(shared_run, "tree", overwrite=True)


def test_the_command_offers_all_formats():
    assert get_args(get_args(Format)[0]) == tuple(EXPORTS)


@pytest.mark.parametrize("to", EXPORTS)
def test_nothing_is_written_through_a_link_of_the_run(small_run, tmp_path, to):
    (tmp_path / "elsewhere").mkdir()
    (small_run.directory / "exports").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"exports is a link, .* Remove the link"):
        export_run(small_run, to)
    assert list((tmp_path / "elsewhere").iterdir()) == []
