"""The command under limits on its address space: it ends well, or with a sentence and code 6."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scene import Scene
from tally import Tally

# Too little for Python, for the command, for NumPy, for all libraries, for a run; enough.
SIZES = (25, 40, 120, 800, 1230, 3000)
LOW_MEMORY = 6


def attack_by_address_space(
    folder: Path, scene: Scene, sizes: Sequence[int] = SIZES, model: str | None = None
) -> Tally:
    """Run the command under limits of some megabytes."""
    tally = Tally("too little memory")
    for size in sizes:

        def attack(size: int = size) -> None:
            code, said = _run(folder, scene, size * 10**6, model or str(scene.model))
            assert "Traceback" not in said, said[-500:]
            assert code == 0 or (code == LOW_MEMORY and "emory" in said), f"{code}: {said[-500:]}"

        tally.attempt(f"{size} MB", attack)
    return tally


def _run(folder: Path, scene: Scene, limit: int, model: str) -> tuple[int, str]:
    words = ("--vocabulary", str(scene.words), "--model", model, "--output", str(folder / "run"))
    ended = subprocess.run(
        [sys.executable, "-m", "nouncut", "cluster", str(scene.photos), "-k", "4", *words],
        env=os.environ | {"NOUNCUT_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr
