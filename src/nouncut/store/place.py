"""Where the store lives."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "NOUNCUT_CACHE"


def default_root() -> Path:
    """Return the store's usual folder.

    Returns
    -------
    Path
        ``features`` inside the folder that the environment variable ``NOUNCUT_CACHE`` names, or
        inside the user's cache folder of the platform.

    Examples
    --------
    >>> from nouncut.store.place import default_root
    >>> default_root().name
    'features'
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    base = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("nouncut")
    return base / "features"
