"""Memory that is free."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping; None if unknown."""
    known = [size for size in (_system_memory(), _container_memory()) if size is not None]
    return min(known) if known else None


def _system_memory() -> int | None:
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        # On macOS we guess that half of all memory is free.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory() -> int | None:
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        return max(0, limit - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        return None
