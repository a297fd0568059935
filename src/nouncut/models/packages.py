"""Files in installed packages, found without running the packages' code."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from nouncut.errors import ModelError


def package_file(package: str, name: str) -> Path:
    """Return the path of a file in an installed package."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, name)
        if path.is_file():
            return path
    raise ModelError(
        f"The embedded model needs {name!r} of the package {package}: install nouncut again, pip "
        "install --force-reinstall nouncut"
    )
