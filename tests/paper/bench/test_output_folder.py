from __future__ import annotations

import pytest

from nouncut.errors import OutputError
from nouncut.paper.bench.output_folder import ResultFolder, file_stem, write_file

FACTS = {"dataset": "../a/b", "model_name": "ViT-B/32", "method": "ours", "seed": 0}


def test_results_are_found_by_all_their_facts(tmp_path):
    folder = ResultFolder(tmp_path)
    folder.write(FACTS, {"nmi": 0.1})
    (path,) = tmp_path.rglob("*.json")
    assert path.relative_to(tmp_path).parts[:2] == ("a-b", "ViT-B-32")
    assert folder.read(FACTS) == {"nmi": 0.1}
    assert folder.read({**FACTS, "seed": 1}) is None


def test_results_are_computed_once_unless_asked_again(tmp_path):
    folder = ResultFolder(tmp_path)
    numbers = iter([1, 2])

    def compute():
        return {"nmi": next(numbers)}

    assert folder.read_or_compute(FACTS, compute) == {"nmi": 1}
    assert folder.read_or_compute(FACTS, compute) == {"nmi": 1}
    assert folder.read_or_compute(FACTS, compute, again=True) == {"nmi": 2}
    assert folder.read(FACTS) == {"nmi": 2}


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="choose another `output`"):
        write_file(tmp_path / "taken", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("name", ["..", "", "/", "\udce9", "é\n", "a" * 300])
def test_stems_are_plain_names(name):
    plain = file_stem(name)
    assert plain.isascii()
    assert 0 < len(plain) <= 60
    assert not plain.startswith(".")
