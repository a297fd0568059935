"""Where the store lives."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "NOUNCUT_CACHE"


def default_root() -> Path:
    """Return the store's usual folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    base = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("nouncut")
    return base / "features"
