"""The manifest of a run: settings, results, checksums, and whether the run is finished."""

from __future__ import annotations

import json
import math
import os
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.runs.checksums import file_version, open_inside, short_digest
from nouncut.runs.directory import FORMAT, MANIFEST, damaged, is_array_name
from nouncut.runs.manifest_fields import CHECKSUM, FILES, wrong_field
from nouncut.runs.tables import unicode_text

# A vocabulary of three million words.
_MOST_BYTES = 64 * 2**20

# What was read last from a path, and the version of the file.
_read: dict[Path, tuple[tuple[int, ...], dict[str, Any]]] = {}


def encode_manifest(manifest: dict[str, Any]) -> bytes:
    """Return a manifest as JSON in UTF-8, with a checksum of its own."""
    plain = _plain({name: value for name, value in manifest.items() if name != CHECKSUM})
    encoded = _encode(plain | {CHECKSUM: short_digest(_encode(plain))})
    if len(encoded) > _MOST_BYTES:
        raise ParameterError(
            f"The manifest would have {len(encoded) / 1e6:.0f} MB, more than readers accept. Pass "
            "a shorter `vocabulary`."
        )
    return encoded


def _encode(plain: Any) -> bytes:
    return (json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n").encode()


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
    path = directory / MANIFEST
    if not os.path.lexists(path):
        raise InputError(
            f"{printable_path(directory)} is not a run: it has no {MANIFEST}. Pass the directory "
            "that a run wrote."
        )
    with open_inside(path, directory) as file:
        version = file_version(file)
        known = _read.get(path)
        if known is None or known[0] != version:
            _read.clear()
            _read[path] = known = (version, parse_manifest(file, directory))
    return dict(known[1])


def parse_manifest(file: BinaryIO, directory: Path) -> dict[str, Any]:
    """Return the manifest in an open file, after checking it."""
    place = printable_path(directory)
    try:
        content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        manifest = json.loads(content)
        if b"\\u" in content:
            manifest = _plain(manifest)  # escapes can hold lone surrogates
        problem = _problem(manifest) if isinstance(manifest, dict) else None
    except (ValueError, RecursionError) as error:
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
    if problem is not None:
        raise damaged(directory / MANIFEST, problem)
    return dict(manifest)


def _problem(manifest: dict[str, Any]) -> str | None:
    """Say which field of a manifest is wrong, or that the manifest does not fit its checksum."""
    name = wrong_field(manifest)
    if name is None and not all(map(is_array_name, manifest.get("arrays") or ())):
        name = "arrays"
    if name is not None:
        return f"its field {name!r} is not what it should be"
    # Manifests of version 0.1.0 have no checksums.
    if CHECKSUM in manifest or FILES in manifest:
        plain = {name: value for name, value in manifest.items() if name != CHECKSUM}
        if short_digest(_encode(_plain(plain))) != manifest.get(CHECKSUM):
            return "its checksum is wrong"
    return None
