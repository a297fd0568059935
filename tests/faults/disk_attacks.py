"""Disks that are full at every size: a limit on the size of files, and a small file system.

The command ends well, or says what is full and ends with code 5. What was there before is whole,
and with room again the same command ends with the same labels.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from forked_command import Fault, Outcome, cluster_command, run_forked
from scene import Scene
from tally import Tally

from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore

NO_ROOM = 5


def attack_by_file_size(folder: Path, scene: Scene, n_sizes: int) -> Tally:
    """Keep all files of a command from growing beyond sizes up to that of the largest."""
    tally = Tally("files that cannot grow")
    work = folder / "file-size"
    work.mkdir()
    expected, largest = _undisturbed(work, scene)
    for size in _sizes(largest, n_sizes):

        def attack(size: int = size) -> None:
            _clear(work)
            _check(work, scene, _run(work, scene, Fault(largest_file=size)), expected)

        tally.attempt(f"{size} bytes", attack)
    return tally


def attack_by_full_disk(folder: Path, scene: Scene, n_sizes: int) -> Tally | None:
    """Run on a file system of 64 MB with ever more room left; None if none can be mounted."""
    tally = Tally("full disk")
    with _small_disk(folder / "disk") as disk:
        if disk is None:
            return None
        expected, _ = _undisturbed(disk, scene)
        needed = shutil.disk_usage(disk).used
        for size in _sizes(needed, n_sizes):

            def attack(size: int = size) -> None:
                _clear(disk)
                filler = disk / "filler"
                filler.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - size)))
                ended = _run(disk, scene, None)
                filler.unlink()
                _check(disk, scene, ended, expected)

            tally.attempt(f"{size} bytes left", attack)
    return tally


def _sizes(largest: int, count: int) -> list[int]:
    """Return sizes from a few kilobytes to the largest, most of them small."""
    # The messages of the command are in a file as well.
    return [4096 + int(size) for size in np.linspace(0, 1, count) ** 2 * 1.05 * largest]


def _undisturbed(work: Path, scene: Scene) -> tuple[list[int], int]:
    """Return the labels of a run that nothing disturbs, and the size of its largest file."""
    ended = _run(work, scene, None)
    assert ended.code == 0, ended.said
    sizes = [path.stat().st_size for path in work.rglob("*") if path.is_file()]
    return open_run(work / "run").labels.tolist(), max(sizes)


def _run(work: Path, scene: Scene, fault: Fault | None) -> Outcome:
    logs = work.with_name(f"{work.name}-logs")
    logs.mkdir(exist_ok=True)
    return run_forked(cluster_command(scene, work / "run"), work / "cache", logs, fault)


def _clear(work: Path) -> None:
    for path in ("run", "cache"):
        shutil.rmtree(work / path, ignore_errors=True)


def _check(work: Path, scene: Scene, ended: Outcome, expected: list[int]) -> None:
    assert "Traceback" not in ended.said, ended.said
    if ended.code != 0:
        assert ended.code == NO_ROOM, f"{ended.code}: {ended.said}"
        assert "room" in ended.said or "limit on file size" in ended.said, ended.said
        if (work / "cache" / "features").exists():
            assert FeatureStore(work / "cache" / "features").check() == [], "a damaged store"
        again = _run(work, scene, None)
        assert again.code == 0, f"{again.code}: {again.said}"
    assert open_run(work / "run").labels.tolist() == expected, "other labels"


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    try:
        is_mounted = not subprocess.run(command, capture_output=True, check=False).returncode
    except OSError:
        is_mounted = False
    if not is_mounted:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
