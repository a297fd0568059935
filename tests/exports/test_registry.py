from __future__ import annotations

import inspect

import pytest

from nouncut.errors import OutputError
from nouncut.exports.registry import EXPORTS, export_run, plan_export

PICTURES = {"tree", "fiftyone", "xmp"}


def files_in(folder):
    return {path for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("to", EXPORTS)
def test_the_plan_is_what_is_written(small_run, tmp_path, to):
    before = files_in(tmp_path)
    plan = plan_export(small_run, to)
    assert files_in(tmp_path) == before
    result = export_run(small_run, to)
    assert files_in(tmp_path) - before == {target for _, target in plan}
    assert result.path == small_run.directory / "exports" / EXPORTS[to].file_name


@pytest.mark.parametrize("to", EXPORTS)
def test_a_destination_of_the_users_choice(small_run, tmp_path, to):
    place = tmp_path / "mine" / f"export of {EXPORTS[to].file_name}"
    result = export_run(small_run, to, str(place))
    assert result.path == place
    assert result.n_written > 0
    assert files_in(tmp_path / "mine") == {
        target for _, target in plan_export(small_run, to, place)
    }


@pytest.mark.parametrize("to", EXPORTS)
def test_options_are_those_of_the_functions(to):
    parameters = list(inspect.signature(EXPORTS[to].write).parameters.values())
    assert [parameter.name for parameter in parameters[:2]] == ["run", "destination"]
    assert tuple(parameter.name for parameter in parameters[2:]) == EXPORTS[to].options
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters[2:])


@pytest.mark.parametrize("to", EXPORTS)
def test_a_run_of_a_features_file(make_run, tmp_path, to):
    run = make_run(tmp_path / "run", source_kind="features")
    if to in PICTURES:
        with pytest.raises(OutputError, match="csv, jsonl or parquet"):
            export_run(run, to)
        assert not (run.directory / "exports").exists()
    else:
        assert export_run(run, to).n_written == len(run.labels)


def test_formats_and_options_that_there_are_not(small_run):
    with pytest.raises(OutputError, match="Choose one of csv, jsonl"):
        export_run(small_run, "xls")
    with pytest.raises(OutputError, match="The export to csv has no option link"):
        export_run(small_run, "csv", link="copy")
    with pytest.raises(OutputError, match=r"no option overwrite\. It has: link"):
        plan_export(small_run, "tree", overwrite=True)
