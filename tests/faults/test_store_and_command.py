"""The short form of the campaigns against the store, and against the command at work."""

from __future__ import annotations

import sys

import pytest
from disk_attacks import attack_by_file_size, attack_by_full_disk
from kill_attacks import attack_by_killing, attack_update
from memory_attacks import attack_by_address_space
from prune_attacks import attack_by_pruning, attack_by_removal
from scene import make_scene, quick_folder
from store_attacks import attack_store, write_old_store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no such limits")


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return make_scene(tmp_path_factory.mktemp("faults") / "scene")


def test_every_file_of_a_store_damaged(folder):
    tally = attack_store(folder, 2)
    assert tally.tried == 30
    assert not tally.harm, tally.harm


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_file_of_an_old_store_damaged(folder):
    tally = attack_store(folder, 2, write=write_old_store)
    assert tally.tried == 40
    assert not tally.harm, tally.harm


def test_a_store_pruned_between_any_two_operations_of_a_run(folder, scene):
    tally = attack_by_pruning(folder, scene, step=15)
    assert tally.tried > 2
    assert not tally.harm, tally.harm


def test_a_store_removed_during_a_run(folder, scene):
    tally = attack_by_removal(folder, scene, step=15)
    assert tally.tried > 1
    assert not tally.harm, tally.harm


def test_the_command_killed(folder, scene):
    tally = attack_by_killing(folder, scene, 4)
    assert tally.tried == 4
    assert not tally.harm, tally.harm


def test_an_update_killed(folder, scene):
    tally = attack_update(folder, scene, 6)
    assert tally.tried == 6
    assert not tally.harm, tally.harm


def test_files_that_cannot_grow(folder, scene):
    tally = attack_by_file_size(folder, scene, 3)
    assert tally.tried == 3
    assert not tally.harm, tally.harm


def test_a_disk_that_is_full(folder, scene):
    tally = attack_by_full_disk(folder, scene, 2)
    if tally is None:
        pytest.skip("a file system can be mounted by root only")
    assert not tally.harm, tally.harm


def test_too_little_memory(folder, scene):
    tally = attack_by_address_space(folder, scene, (25, 40, 120, 800))
    assert tally.tried == 4
    assert not tally.harm, tally.harm
