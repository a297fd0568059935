"""Memory that is free, and memory that this process uses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping; None if unknown."""
    known = [size for size in (_system_memory(), _container_memory()) if size is not None]
    return min(known) if known else None


def used_memory() -> int | None:
    """Return the bytes of this process that are in memory; None if unknown."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    # macOS tells only the peak.
    return _windows_memory("WorkingSetSize") if sys.platform == "win32" else peak_memory()


def peak_memory() -> int | None:
    """Return the most bytes of this process that have been in memory; None if unknown."""
    if _STATUS.exists():
        # Unlike the peak that getrusage tells, this one does not include the parent process.
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _windows_memory("PeakWorkingSetSize")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _windows_memory(name: str) -> int | None:
    import ctypes

    class Counters(ctypes.Structure):
        _fields_ = (
            ("cb", ctypes.c_ulong),
            ("PageFaultCount", ctypes.c_ulong),
            ("PeakWorkingSetSize", ctypes.c_size_t),
            ("WorkingSetSize", ctypes.c_size_t),
            ("rest", ctypes.c_size_t * 6),
        )

    counters = Counters(cb=ctypes.sizeof(Counters))
    libraries: Any = ctypes.windll  # type: ignore[attr-defined]
    process = ctypes.c_void_p(libraries.kernel32.GetCurrentProcess())
    found = libraries.psapi.GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
    return int(getattr(counters, name)) if found else None


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
