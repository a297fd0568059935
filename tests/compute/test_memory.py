from __future__ import annotations

from nouncut.compute import memory as memory_module
from nouncut.compute.memory import available_memory


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(memory_module, "_CGROUP", tmp_path)
    assert available_memory() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() != 3000
