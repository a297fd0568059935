from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from nouncut.compute import memory as memory_module
from nouncut.compute.memory import available_memory, free_memory, peak_memory, used_memory


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Return an empty tree of control groups; nothing else limits this process."""
    monkeypatch.setattr(memory_module, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(memory_module, "_OWN_CGROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("0::/\n")
    return tmp_path / "cgroup"


def limit(folder, limit, used, cache=0, version=2):
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - cache}\n{names[2]} {cache}\n")


def test_a_containers_limit_counts(groups):
    limit(groups, 5000, 2000)
    assert free_memory() == (3000, "container")
    limit(groups, "max", 2000)
    assert free_memory().limit == "machine"


def test_memory_that_only_caches_files_is_free(groups):
    limit(groups, 5000, 4000, cache=1500)
    assert available_memory() == 2500


def test_a_limit_that_slows_down_counts(groups):
    limit(groups, 5000, 1000)
    (groups / "memory.high").write_text("3000\n")
    assert available_memory() == 2000


@pytest.mark.parametrize("folder", ["", "unified"])
def test_the_groups_around_that_of_the_process_count(groups, tmp_path, folder):
    (tmp_path / "own").write_text("1:cpu,cpuacct:/else\n0::/user/app:1\n")
    limit(groups / folder / "user" / "app:1", 5000, 1000)
    assert available_memory() == 4000
    limit(groups / folder / "user", 3000, 2000)
    assert available_memory() == 1000
    limit(groups / folder / "other", 10, 10)
    assert available_memory() == 1000


def test_control_groups_of_version_1(groups, tmp_path):
    (tmp_path / "own").write_text("4:memory:/docker/abc\n0::/\n")
    limit(groups / "memory" / "docker" / "abc", 7000, 3000, cache=1000, version=1)
    assert available_memory() == 5000
    # Inside some containers the path is that of the host, and the group is the root.
    (tmp_path / "own").write_text("4:memory:/not/here\n")
    limit(groups / "memory", 6000, 3000, version=1)
    assert available_memory() == 3000


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit")
def test_a_limit_on_address_space_counts():
    script = """
import resource
from nouncut.compute.memory import free_memory
resource.setrlimit(resource.RLIMIT_AS, (400_000_000, -1))
print(*free_memory())
"""
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said[1] == "process"
    assert 200_000_000 < int(said[0]) < 400_000_000


def test_the_memory_of_this_process_and_its_peak():
    before = used_memory()
    block = np.ones(32 * 2**20)
    grown = used_memory() - before
    assert 0.9 * block.nbytes < grown < 1.5 * block.nbytes
    del block
    # The kernel counts pages of different threads in batches.
    assert peak_memory() > before + 0.9 * grown
