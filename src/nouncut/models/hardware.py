"""Graphics processors, found without importing torch."""

from __future__ import annotations

import platform
import shutil
import sys


def gpu_kind() -> str | None:
    """Return "cuda" or "mps" if this machine and the installed torch have one, else None."""
    kind = None
    if sys.platform == "darwin":
        kind = "mps" if platform.machine() == "arm64" else None
    elif shutil.which("nvidia-smi"):  # the driver's own tool
        kind = "cuda"
    return kind if kind and _torch_supports(kind) else None


def _torch_supports(kind: str) -> bool:
    # Not imported above, since most machines never need it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        build = version("torch")
    except PackageNotFoundError:
        return False
    return kind == "mps" or not build.endswith("+cpu")
