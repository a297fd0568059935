"""Memory that is free within the limits of this process, and memory that it uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_CGROUP = Path("/sys/fs/cgroup")
# Limit, use, and the part of the use that is given back when it is needed: names in both versions
# of control groups.
_CGROUP_FILES = (
    (("memory.max", "memory.high"), "memory.current", "inactive_file "),
    (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file "),
)
# What compiled libraries and threads say when they get no memory.
_NO_MEMORY = ("failed to map segment", "can't start new thread", "annot allocate", "bad_alloc")


class FreeMemory(NamedTuple):
    """Bytes that can be allocated, and what limits them."""

    n_bytes: int
    limit: Literal["machine", "container", "process"]


def free_memory() -> FreeMemory | None:
    """Return the memory that can be allocated without swapping; None if unknown."""
    known = []
    if (size := _system_memory()) is not None:
        known.append(FreeMemory(size, "machine"))
    if (size := _container_memory()) is not None:
        known.append(FreeMemory(size, "container"))
    if (size := free_address_space()) is not None:
        known.append(FreeMemory(size, "process"))
    return min(known, default=None)


def free_swap() -> int:
    """Return the bytes that the system could still swap out; 0 if unknown."""
    return 1024 * (_first_number(_MEMINFO, "SwapFree:") or 0)


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping; None if unknown."""
    free = free_memory()
    return None if free is None else free.n_bytes


def is_memory_error(error: BaseException) -> bool:
    """Tell whether an error means that there is not enough memory."""
    if isinstance(error, MemoryError):
        return True
    return any(words in str(error) for words in _NO_MEMORY)


def free_address_space() -> int | None:
    """Return what is left of the limit on this process's address space (ulimit -v)."""
    if not _STATM.exists():
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


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
    if available := _first_number(_MEMINFO, "MemAvailable:"):
        return available * 1024
    try:
        # On macOS we guess that half of all memory is free.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory() -> int | None:
    """Return what is left of the smallest limit of this process's control groups."""
    found = []
    for folder in _cgroup_folders():
        for names, use, reclaimable in _CGROUP_FILES:
            limits = [_first_number(folder / name) for name in names]
            known = [limit for limit in limits if limit is not None]
            used = _first_number(folder / use)
            if known and used is not None:
                cache = _first_number(folder / "memory.stat", reclaimable) or 0
                found.append(max(0, min(known) - max(0, used - cache)))
    return min(found, default=None)


def _cgroup_folders() -> Iterator[Path]:
    """Yield the folders of this process's control groups and of those around them."""
    yield _CGROUP
    try:
        lines = _OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            group = Path(path.lstrip("/"))
            for root in (_CGROUP, _CGROUP / (controllers or "unified")):
                yield from (root / part for part in (group, *group.parents))


def _first_number(path: Path, word: str = "") -> int | None:
    """Return the number after a word at the beginning of a line; None if there is none."""
    try:
        lines = path.read_text().splitlines()
        return next(int(line[len(word) :].split()[0]) for line in lines if line.startswith(word))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
