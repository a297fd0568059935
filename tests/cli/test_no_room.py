"""Output that cannot be written: no room, no permission, something in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from nouncut.runs.run import open_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such limits")


def mount(folder, *options):
    """Mount a file system in memory, if this user may."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", *options, "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a file system can be mounted by root only")


def fill(disk, leave=0):
    """Write a file that takes all room but some; return it."""
    filler = disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk).free - leave))
    return filler


@pytest.fixture
def photos(draw, tmp_path):
    draw(tmp_path / "photos", range(12))
    return tmp_path / "photos"


@pytest.fixture
def cluster(photos, tiny_clip, words):
    return ("cluster", photos, "--model", tiny_clip, "--vocabulary", words)


def snapshot(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("filler", "run.lock")
    }


@pytest.mark.parametrize("leave", [0, 65536])
def test_a_full_disk_leaves_the_earlier_run_intact(nouncut, cluster, small_disk, leave):
    place = small_disk / "run"
    nouncut(*cluster, "-k", 2, "-o", place)
    before = snapshot(place)
    filler = fill(small_disk, leave)
    ended = nouncut(*cluster, "-k", 3, "-o", place, "--replace", code=5)
    assert f"No room left for the run in {place}" in ended.err
    assert "Free some space" in ended.err
    assert snapshot(place) == before
    filler.unlink()
    again = nouncut(*cluster, "-k", 3, "-o", place, "--replace", "--json")
    assert (again.json["n_clusters"], again.json["n_encoded"]) == (3, 0)


def test_a_full_disk_under_the_feature_cache(nouncut_in, cluster, small_disk, tmp_path):
    nouncut = nouncut_in(tmp_path, small_disk / "cache")
    nouncut("cache", "show")
    filler = fill(small_disk, leave=4096)
    ended = nouncut(*cluster, "-k", 2, "-o", "run", code=5)
    assert "No room left for features" in ended.err
    assert "NOUNCUT_CACHE" in ended.err
    filler.unlink()
    assert nouncut(*cluster, "-k", 2, "-o", "run", "--json").json["n_images"] == 12


def test_files_that_may_not_grow(nouncut, cluster, tmp_path):
    nouncut(*cluster, "-k", 2, "-o", "run")
    before = snapshot(tmp_path / "run")
    other = (*cluster, "-k", 3, "-o", "run", "--replace")
    ended = nouncut(*other, largest_file=2000, code=5)
    assert "No room left" in ended.err
    assert snapshot(tmp_path / "run") == before
    assert nouncut(*other, "--json").json["n_clusters"] == 3


def test_a_cache_whose_files_may_not_grow(nouncut_in, cluster, tmp_path):
    nouncut = nouncut_in(tmp_path, tmp_path / "cache")
    ended = nouncut(*cluster, "-k", 2, "-o", "run", largest_file=2000, code=5)
    assert "NOUNCUT_CACHE" in ended.err
    assert nouncut(*cluster, "-k", 2, "-o", "run", "--json").json["n_encoded"] == 12


def test_a_file_in_the_way_of_the_output(nouncut, cluster, tmp_path):
    (tmp_path / "taken").write_text("mine")
    for place in ("taken", "taken/run"):
        ended = nouncut(*cluster, "-k", 2, "-o", place, code=5)
        assert "taken" in ended.err
        assert "--output" in ended.err
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.fixture
def read_only(tmp_path):
    """Return a folder that cannot be written to, even by root."""
    folder = tmp_path / "read only"
    if os.geteuid() == 0:
        mount(folder, "-o", "ro")
        yield folder
        subprocess.run(["umount", "--lazy", folder], check=True)
    else:
        folder.mkdir(mode=0o555)
        yield folder


def test_a_read_only_output(nouncut, finished, cluster, read_only, tmp_path):
    for place in (read_only, read_only / "run"):
        ended = nouncut(*cluster, "-k", 2, "-o", place, code=5)
        assert str(read_only) in ended.err
        assert "--output" in ended.err
    # The output is inside the current folder by default.
    assert "--output" in nouncut(*cluster, "-k", 2, cwd=read_only, code=5).err
    assert "read only" in nouncut("export", finished, "-o", read_only / "a.csv", code=5).err
    table = ("predict", finished, tmp_path / "photos", "-o", read_only / "a.csv")
    assert "read only" in nouncut(*table, code=5).err


def test_a_read_only_cache(nouncut_in, cluster, read_only, tmp_path):
    nouncut = nouncut_in(tmp_path, read_only)
    assert "NOUNCUT_CACHE" in nouncut(*cluster, "-k", 2, code=5).err


def test_a_damaged_earlier_run_is_made_again(nouncut, cluster, tmp_path):
    nouncut(*cluster, "-k", 2, "-o", "run")
    labels = open_run(tmp_path / "run").labels.tolist()
    (tmp_path / "run" / "assignments.parquet").write_bytes(b"")
    assert "damaged" in nouncut("report", "run", code=3).err
    nouncut(*cluster, "-k", 2, "-o", "run")
    assert open_run(tmp_path / "run").labels.tolist() == labels
