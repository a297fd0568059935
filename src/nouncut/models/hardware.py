"""Graphics processors, found without importing torch."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version


def gpu_kind() -> str | None:
    """Return "cuda" or "mps" if this machine and the installed torch have one, else None."""
    try:
        build = version("torch")
    except PackageNotFoundError:
        return None
    if sys.platform == "darwin":
        return "mps" if platform.machine() == "arm64" else None
    # The driver's own tool; builds of torch for the CPU end in "+cpu".
    has_driver = shutil.which("nvidia-smi") is not None
    return "cuda" if has_driver and not build.endswith("+cpu") else None
