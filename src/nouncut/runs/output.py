"""Where a run goes when the user did not say."""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path

from nouncut.errors import InputError
from nouncut.runs.directory import foreign_names
from nouncut.runs.errors import explained
from nouncut.runs.manifest import read_manifest

FOLDER = "nouncut-runs"

_MAX_BYTES = 80
# Separators, and what else Windows does not allow in names.
_FORBIDDEN = frozenset('/\\:*?"<>|')
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)


def choose_output(source_name: str, digest: str, parent: Path) -> Path:
    """Return where a run goes by default."""
    folder, name = parent / FOLDER, safe_name(source_name)
    numbered = re.compile(re.escape(name) + r"(-\d+)?")
    with explained(folder):
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            if numbered.fullmatch(place.name) and _digest(place) == digest:
                return place
        places = (folder / (name if number == 1 else f"{name}-{number}") for number in count(1))
        return next(place for place in places if _is_free(place))


def safe_name(name: str) -> str:
    r"""Return a name that any file system takes, as close to the given one as can be."""
    known = "".join("_" if c in _FORBIDDEN or not c.isprintable() else c for c in name)
    bare = known.strip(". ")
    allowed = f"_{bare}" if _RESERVED.fullmatch(bare) else bare
    return allowed.encode()[:_MAX_BYTES].decode(errors="ignore").rstrip(". ") or "run"


def _is_free(place: Path) -> bool:
    return not os.path.lexists(place) or (place.is_dir() and not foreign_names(place))


def _digest(place: Path) -> object:
    try:
        return read_manifest(place).get("digest")
    except InputError:
        return None
