"""Names that the user gave to clusters."""

import json
import re

import pytest

from nouncut.errors import InputError
from nouncut.runs.renames import read_names
from nouncut.runs.run import open_run


def saved(folder, content):
    file = folder / "my names.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_new_names_are_everywhere(small_run):
    old = small_run.names
    small_run.computed.rename(1, "<i>Tom</i> & 'co' \N{CAT FACE}")
    run = open_run(small_run.directory)
    new = [old[0], "<i>Tom</i> & 'co' \N{CAT FACE}", old[2]]
    assert run.names == run.clusters["name"].to_pylist() == new
    assert run.assignments["name"].to_pylist() == [new[label] for label in run.labels]
    second = run.assignments["second_cluster"].to_pylist()
    assert run.assignments["second_name"].to_pylist() == [new[number] for number in second]
    assert run.assignments.schema == small_run.assignments.schema
    run.undo()
    assert open_run(run.directory).names == old


def test_names_of_a_run_that_was_there_before_are_not_used(small_run, make_run):
    small_run.rename(0, "old")
    again = make_run(small_run.directory)
    assert "old" not in again.names
    assert (small_run.directory / "earlier-edits.jsonl").exists()


def test_names_without_a_run_suit_any(tmp_path, small_run):
    file = saved(tmp_path, {"format": 1, "names": {"2": " two\n lines "}})
    assert read_names(file, small_run.manifest) == {2: "two lines"}


def test_names_of_another_run_are_refused(tmp_path, small_run):
    file = saved(tmp_path, {"format": 1, "run": "another", "names": {"0": "cats"}})
    with pytest.raises(InputError, match="another run"):
        read_names(file, small_run.manifest)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([], "no .names."),
        ({"format": 1, "names": ["cat"]}, "no .names."),
        ({"format": 2, "names": {}}, "format"),
        ({"format": 1, "names": {"-1": "cat"}}, "number of a cluster"),
        ({"format": 1, "names": {"²": "cat"}}, "number of a cluster"),
        ({"format": 1, "names": {"0": " \n"}}, "empty"),
        ({"format": 1, "names": {"0": 7}}, "empty"),
        ({"format": 1, "names": {"3": "cat"}}, "names cluster 3, which the run does not have"),
    ],
)
def test_what_is_no_list_of_names_is_refused(tmp_path, small_run, content, reason):
    file = saved(tmp_path, content)
    with pytest.raises(InputError, match=re.escape(str(file))) as raised:
        read_names(file, small_run.manifest)
    assert re.search(reason, str(raised.value))


def test_a_missing_file_is_named(tmp_path, small_run):
    with pytest.raises(InputError, match="gone"):
        read_names(tmp_path / "gone.json", small_run.manifest)


def test_half_a_character_is_replaced(tmp_path, small_run):
    file = saved(tmp_path, '{"format": 1, "names": {"0": "half \\ud83d cat"}}')
    read_names(file, small_run.manifest)[0].encode()


def test_names_that_the_user_gave_are_no_guesses(small_run):
    assert small_run.clusters["guess"].to_pylist() == [False, True, False]
    small_run.rename(1, "My cats")
    table = small_run.clusters
    assert table["guess"].to_pylist() == [False, False, False]
    assert table["name_confidence"].to_pylist() == pytest.approx([0.97, 1.0, 0.0])
