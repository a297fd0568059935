"""The manifest of a run: settings, results, and whether the run is finished."""

from __future__ import annotations

import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nouncut.errors import InputError, printable_path
from nouncut.runs.directory import FORMAT, MANIFEST
from nouncut.runs.tables import unicode_text


def encode_manifest(manifest: dict[str, Any]) -> bytes:
    """Return a manifest as JSON in UTF-8."""
    return (json.dumps(_plain(manifest), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """Return a value in JSON's types."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | PathLike):
        return unicode_text(str(value))
    if isinstance(value, dict):
        return {unicode_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a run, finished or not."""
    place = printable_path(directory)
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"{place} is not a run: it has no {MANIFEST}. Pass the directory that a run wrote."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"The {MANIFEST} of {place} cannot be read ({error}). Run the command that made the "
            "run again, with another `output`."
        ) from error
    known = isinstance(manifest, dict) and type(manifest.get("format")) is int
    if not known or manifest.get("status") not in ("running", "complete"):
        raise InputError(
            f"{place} is not a run: its {MANIFEST} is not one of nouncut. Pass the directory that "
            "a run wrote."
        )
    if manifest["format"] > FORMAT:
        raise InputError(
            f"The run in {place} was written by a newer nouncut (format {manifest['format']}; this "
            f"one knows {FORMAT}). Update nouncut."
        )
    return dict(manifest)
