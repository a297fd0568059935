from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest

from nouncut.cli.export import Format
from nouncut.errors import InputError, OutputError, ParameterError
from nouncut.exports.registry import EXPORTS, export_run

# Files that exports keep for themselves.
LISTS = {".nouncut-tree.json", ".nouncut-album.json"}


def files_in(folder):
    return {path for path in folder.rglob("*") if not path.is_dir() and path.name not in LISTS}


@pytest.mark.parametrize("to", EXPORTS)
def test_the_preview_is_what_is_written(shared_run, tmp_path, to):
    output = tmp_path / "mine" / f"export of {EXPORTS[to].file_name}"
    preview = export_run(shared_run, to, output, preview=True)
    assert preview.is_preview
    assert not (tmp_path / "mine").exists()
    result = export_run(shared_run, to, str(output))
    assert not result.is_preview
    assert result.path == preview.path == output
    assert result.n_images == preview.n_images > 0
    assert files_in(tmp_path) == set(preview.files) == set(result.files)
    assert result.n_files == preview.n_files == len(files_in(tmp_path))
    assert result.hint == preview.hint


@pytest.mark.parametrize("to", EXPORTS)
def test_a_part_of_a_run(shared_run, tmp_path, to):
    output = tmp_path / EXPORTS[to].file_name
    rows = np.flatnonzero(shared_run.labels == 1)
    by_row = export_run(shared_run, to, tmp_path / "rows" / output.name, rows=rows[::-1])
    by_group = export_run(shared_run, to, tmp_path / "group" / output.name, groups=[1])
    assert by_row.n_images == by_group.n_images == len(rows)
    first, second = tmp_path / "rows", tmp_path / "group"
    names = {path.relative_to(first) for path in files_in(first)}
    assert names == {path.relative_to(second) for path in files_in(second)}
    preview = export_run(shared_run, to, tmp_path / "new" / output.name, groups=[1], preview=True)
    assert {path.relative_to(tmp_path / "new") for path in preview.files} == names
    whole = export_run(shared_run, to, tmp_path / "whole" / output.name)
    assert whole.n_images > len(rows)


def test_rows_and_groups_add_up(shared_run, tmp_path):
    name = shared_run.names_by_cluster[2]
    result = export_run(shared_run, "jsonl", tmp_path / "a.jsonl", rows=[0, 0, 3], groups=[name])
    found = [json.loads(line)["path"] for line in result.path.read_text().splitlines()]
    paths = shared_run.assignments["path"].to_pylist()
    wanted = [0, 3, *np.flatnonzero(shared_run.labels == 2).tolist()]
    assert found == [paths[row] for row in sorted(wanted)]


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"rows": [99]}, "from 0 to 23"),
        ({"rows": [-1]}, "from 0 to 23"),
        ({"rows": [0.5]}, "whole numbers"),
        ({"rows": ["1"]}, "whole numbers"),
        ({"rows": [[1]]}, "whole numbers"),
        ({"rows": []}, "no images to export"),
        ({"groups": []}, "no images to export"),
        ({"groups": [7]}, "no group 7"),
        ({"groups": ["nothing"]}, 'no group "nothing"'),
    ],
)
def test_images_and_groups_that_there_are_not(shared_run, tmp_path, chosen, error):
    with pytest.raises((InputError, ParameterError), match=error):
        export_run(shared_run, "csv", tmp_path / "a.csv", **chosen)
    assert list(tmp_path.iterdir()) == []


def test_exports_are_in_the_run_by_default(small_run, tmp_path):
    before = files_in(tmp_path)
    previews = [export_run(small_run, to, preview=True) for to in EXPORTS]
    for to in EXPORTS:
        folder = small_run.directory / "exports"
        assert export_run(small_run, to).path == folder / EXPORTS[to].file_name
    assert files_in(tmp_path) - before == {file for one in previews for file in one.files}


def test_a_run_of_a_features_file(make_run, tmp_path):
    run = make_run(tmp_path / "run", source_kind="features")
    need_images = {to for to, export in EXPORTS.items() if export.needs_images}
    assert need_images == {"tree", "album", "xmp", "fiftyone"}
    for to in need_images:
        with pytest.raises(OutputError, match="csv, jsonl or parquet"):
            export_run(run, to)
    assert not (run.directory / "exports").exists()
    for to in EXPORTS.keys() - need_images:
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
        export_run(shared_run, "tree", overwrite=True, preview=True)


def test_the_command_offers_all_formats():
    assert get_args(get_args(Format)[0]) == tuple(EXPORTS)


@pytest.mark.parametrize("to", EXPORTS)
def test_nothing_is_written_through_a_link_of_the_run(small_run, tmp_path, to):
    (tmp_path / "elsewhere").mkdir()
    (small_run.directory / "exports").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"exports is a link, .* Remove the link"):
        export_run(small_run, to)
    assert list((tmp_path / "elsewhere").iterdir()) == []
