"""Where runs go by default."""

import pytest

from nouncut.runs.output import choose_output
from nouncut.runs.writer import RunWriter


def test_places_are_numbered_by_digest(tmp_path, make_run):
    runs = tmp_path / "nouncut-runs"
    photos = tmp_path / "photos"
    assert choose_output("pets", "a", tmp_path) == runs / "pets"
    assert not runs.exists()
    make_run(runs / "pets", photos=photos, manifest={"digest": "a"})
    assert choose_output("pets", "a", tmp_path) == runs / "pets"
    assert choose_output("pets", "b", tmp_path) == runs / "pets-2"
    make_run(runs / "pets-2", photos=photos, manifest={"digest": "b"})
    assert choose_output("pets", "b", tmp_path) == runs / "pets-2"
    assert choose_output("pets", "c", tmp_path) == runs / "pets-3"
    assert choose_output("pet", "a", tmp_path) == runs / "pet"


def test_an_unfinished_run_is_gone_on_with(tmp_path):
    with RunWriter(tmp_path / "nouncut-runs" / "pets") as writer:
        writer.start({"digest": "a"})
    assert choose_output("pets", "a", tmp_path).name == "pets"
    assert choose_output("pets", "b", tmp_path).name == "pets-2"


def test_a_gap_does_not_hide_the_run_behind_it(tmp_path):
    with RunWriter(tmp_path / "nouncut-runs" / "pets-3") as writer:
        writer.start({"digest": "c"})
    assert choose_output("pets", "c", tmp_path).name == "pets-3"
    assert choose_output("pets", "a", tmp_path).name == "pets"


def test_other_things_are_left_alone(tmp_path):
    runs = tmp_path / "nouncut-runs"
    (runs / "pets").mkdir(parents=True)
    assert choose_output("pets", "a", tmp_path).name == "pets"
    (runs / "pets" / "thesis.doc").touch()
    (runs / "pets-2").touch()
    (runs / "pets-3").symlink_to("nowhere")
    (runs / "pets-4" / "arrays").mkdir(parents=True)
    (runs / "pets-4" / "arrays" / "precious.npy").touch()
    assert choose_output("pets", "a", tmp_path).name == "pets-5"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("my pets", "my pets"), ("..", "run"), (".hidden", "hidden"), ("C:", "C_"), ("CON", "_CON")],
)
def test_directories_have_names_that_every_system_takes(source, expected, tmp_path):
    assert choose_output(source, "a", tmp_path).name == expected
