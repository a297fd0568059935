from __future__ import annotations

import numpy as np

from nouncut.compute import memory as memory_module
from nouncut.compute.memory import available_memory, peak_memory, used_memory


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(memory_module, "_CGROUP", tmp_path)
    assert available_memory() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() != 3000


def test_the_memory_of_this_process_and_its_peak():
    before = used_memory()
    block = np.ones(32 * 2**20)
    grown = used_memory() - before
    assert 0.9 * block.nbytes < grown < 1.5 * block.nbytes
    del block
    # The kernel counts pages of different threads in batches.
    assert peak_memory() > before + 0.9 * grown
