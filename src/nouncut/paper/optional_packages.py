"""Packages of the extra `paper`: torch and others run baselines, matplotlib draws figures."""

from __future__ import annotations

from importlib.util import find_spec

from nouncut.errors import ModelError


def require_package(package: str, what: str, otherwise: str = "") -> None:
    """Raise an error that says how to install a package, unless it is installed."""
    if find_spec(package) is None:
        raise ModelError(
            f'{what} needs {package}: pip install "nouncut[paper]".{otherwise and " " + otherwise}'
        )
