"""``nouncut cluster`` on a handful of images, on copies, and with wrong numbers."""

from __future__ import annotations

import shutil

import pytest

from nouncut.runs.run import open_run

PYTHON_NAMES = ("n_neighbors", "n_clusters", "random_state", "max_clusters", "tau=")


@pytest.fixture
def cluster(nouncut, tiny_clip, words):
    def run(*arguments, **options):
        ended = nouncut(
            "cluster", *arguments, "--model", tiny_clip, "--vocabulary", words, **options
        )
        assert not any(name in ended.err for name in PYTHON_NAMES), ended.err
        return ended

    return run


@pytest.mark.parametrize("n_images", [2, 3, 5])
def test_few_images_make_any_number_of_groups(cluster, draw, tmp_path, n_images):
    draw(tmp_path / "photos", range(600, 600 + n_images))
    for asked in (1, 2, n_images):
        told = cluster("photos", "-k", asked, "--json", "--output", f"run {asked}").json
        assert told["n_clusters"] == asked
    assert cluster("photos", "--json", "--output", "auto").json["n_clusters"] >= 1


def test_copies_share_a_group_and_are_counted(cluster, draw, tmp_path):
    photos = tmp_path / "photos"
    (original, *_) = draw(photos, range(620, 640))
    for number in range(11):
        shutil.copy(original, photos / f"copy {number}.png")
    told = cluster("photos", "-k", 4)
    assert "31 images in 4 groups; " in told.out
    assert "; 11 are copies of others." in told.out
    run = open_run(tmp_path / "nouncut-runs" / "photos")
    same = [path.name == original.name or "copy" in path.name for path in run.paths()]
    rows = [row for row, is_same in zip(run.assignments.to_pylist(), same, strict=True) if is_same]
    assert len(rows) == 12
    assert {(row["cluster"], row["confidence"], row["outlier"]) for row in rows} == {
        (rows[0]["cluster"], rows[0]["confidence"], False)
    }
    assert run.manifest["n_copies"] == 11
    assert "11 copies" in " ".join(run.report.read_text().split())


def test_messages_speak_of_options(cluster, draw, tmp_path):
    draw(tmp_path / "photos", range(640, 643))
    assert "30 neighbours were asked for" in cluster("photos", "-k", 2, "--neighbors", 30).err
    assert "-k" in cluster("photos", "-k", "0", code=2).err
    assert "--neighbors" in cluster("photos", "--neighbors", "many", code=2).err
    assert "-k is 4, but there are only 3 images" in cluster("photos", "-k", 4, code=2).err
