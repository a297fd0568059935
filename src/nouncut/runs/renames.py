"""Names that the user gave to clusters, instead of those that were found.

They come from the report, as a small JSON file::

    {"format": 1, "run": "0f3a...", "names": {"0": "My cats", "3": "Holidays"}}

``run`` says which run they belong to, and may be left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from nouncut.compute.files import install, new_file, waiting
from nouncut.errors import InputError, printable_path
from nouncut.runs.directory import explained
from nouncut.runs.tables import unicode_text

NAMES = "names.json"
FORMAT = 1

# A cluster's number, and the columns that tell its name.
_NAMED = (("cluster", "name"), ("second_cluster", "second_name"))


def read_names(
    file: str | os.PathLike[str], manifest: Mapping[str, Any] | None = None
) -> dict[int, str]:
    """Read the names of clusters that were saved from a report."""
    saved, names = _read(Path(file))
    if manifest is None:
        return names
    place = printable_path(file)
    if not _is_of(saved, manifest):
        raise InputError(
            f"The names in {place} were saved from the report of another run, whose clusters may "
            'be others. To use them all the same, remove "run" from the file.'
        )
    n_clusters = int(manifest["n_clusters"])
    if unknown := [number for number in names if number >= n_clusters]:
        raise InputError(
            f"{place} names cluster {unknown[0]}, but the run has {n_clusters} clusters, numbered "
            "from 0. Save the names again from the report of this run."
        )
    return names


def saved_names(directory: Path, manifest: Mapping[str, Any]) -> dict[int, str]:
    """Return the names that are kept with a run."""
    file = directory / NAMES
    if not file.is_file() or not _is_of(_read(file)[0], manifest):
        return {}
    return read_names(file, manifest)


def write_names(directory: Path, manifest: Mapping[str, Any], names: Mapping[int, str]) -> None:
    """Keep names with a run, so that its report and its exports have them."""
    content = {
        "format": FORMAT,
        "run": manifest.get("id"),
        "names": {str(number): unicode_text(name) for number, name in sorted(names.items())},
    }
    file = directory / NAMES
    with explained(directory):
        waiting(file).unlink(missing_ok=True)
        with new_file(file) as unfinished:
            unfinished.write((json.dumps(content, ensure_ascii=False) + "\n").encode())
        install(file)


def renamed_table(table: pa.Table, names: Mapping[int, str]) -> pa.Table:
    """Return a table of assignments or clusters with new names."""
    if not names:
        return table
    for number_column, name_column in _NAMED:
        position = table.schema.get_field_index(name_column)
        if position >= 0:
            old = zip(table[number_column].to_pylist(), table[name_column].to_pylist(), strict=True)
            new = [names.get(number, name) for number, name in old]
            field = table.schema.field(position)
            table = table.set_column(position, field, pa.array(new, field.type))
    return table


def _read(file: Path) -> tuple[object, dict[int, str]]:
    """Return the run that names were saved from, and the names."""
    place = printable_path(file)
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise _unusable(place, str(reason)) from error
    if not isinstance(content, dict) or not isinstance(content.get("names"), dict):
        raise _unusable(place, 'it has no "names"')
    if content.get("format") != FORMAT:
        raise _unusable(place, "its format is not known to this version of nouncut")
    return content.get("run"), dict(
        _checked(key, name, place) for key, name in content["names"].items()
    )


def _checked(key: str, name: object, place: str) -> tuple[int, str]:
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise _unusable(place, f"{key!r} is not the number of a cluster")
    line = " ".join(unicode_text(name).split()) if isinstance(name, str) else ""
    if not line:
        raise _unusable(place, f"the name of cluster {key} is empty")
    return int(key), line


def _unusable(place: str, reason: str) -> InputError:
    return InputError(
        f"{place} cannot be used as names of clusters ({reason}). Save the names again with the "
        "button in the report."
    )


def _is_of(saved: object, manifest: Mapping[str, Any]) -> bool:
    return saved is None or saved == manifest.get("id")
