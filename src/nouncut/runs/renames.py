"""Names that the user gave to clusters.

The report saves them as a small JSON file::

    {"format": 1, "run": "0f3a...", "names": {"0": "My cats", "3": "Holidays"}}

``run`` is the id of the run that they belong to, and optional. The file in a run directory also has
a ``checksum`` of the names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from nouncut.compute.files import AnyPath, atomic_file
from nouncut.errors import InputError, describe_error, printable_path
from nouncut.runs.checksums import open_inside, short_digest
from nouncut.runs.directory import explained
from nouncut.runs.manifest_fields import CHECKSUM
from nouncut.runs.tables import unicode_text

NAMES, EARLIER_NAMES = "names.json", "earlier-names.json"
FORMAT = 1
_MOST_BYTES = 64 * 2**20

# Columns of cluster numbers, and the columns of their names.
_NAMED = (("cluster", "name"), ("second_cluster", "second_name"))


def read_names(file: AnyPath, manifest: Mapping[str, Any] | None = None) -> dict[int, str]:
    """Read names by cluster number, and check that they suit the run of a manifest."""
    saved, names = _read(Path(file))
    return _suitable(file, saved, names, manifest)


def _suitable(
    file: AnyPath, saved: object, names: dict[int, str], manifest: Mapping[str, Any] | None
) -> dict[int, str]:
    """Return names if they suit the run of a manifest."""
    if manifest is None:
        return names
    shown = printable_path(file)
    if not _is_of(saved, manifest):
        raise InputError(
            f"The names in {shown} were saved from the report of another run, whose clusters may "
            'differ. To use them anyway, remove "run" from the file.'
        )
    n_clusters = int(manifest["n_clusters"])
    if unknown := [number for number in names if number >= n_clusters]:
        raise InputError(
            f"{shown} names cluster {unknown[0]}, but the run has {n_clusters} clusters, numbered "
            "from 0. Save the names again from the report of this run."
        )
    return names


def saved_names(directory: Path, manifest: Mapping[str, Any]) -> dict[int, str]:
    """Return the names saved in a run directory; none if they belong to an earlier run."""
    path = directory / NAMES
    if not os.path.lexists(path):
        return {}
    with open_inside(path, directory) as file:
        content = file.read(_MOST_BYTES + 1)
    saved, names = _parse(content, path)
    return _suitable(path, saved, names, manifest) if _is_of(saved, manifest) else {}


def set_aside_names(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Rename saved names that do not suit a new run, so that they are neither used nor lost."""
    try:
        path = directory / NAMES
        with open_inside(path, directory) as file:
            is_usable = _is_of(_parse(file.read(_MOST_BYTES + 1), path)[0], manifest)
    except InputError:
        is_usable = False
    if not is_usable and os.path.lexists(path):
        os.replace(path, directory / EARLIER_NAMES)


def write_names(directory: Path, manifest: Mapping[str, Any], names: Mapping[int, str]) -> None:
    """Save names in a run directory, for its report and its exports."""
    with explained(directory), atomic_file(directory / NAMES) as new:
        new.write(encode_names(manifest, names))


def encode_names(manifest: Mapping[str, Any], names: Mapping[int, str]) -> bytes:
    """Return names of a run's clusters as JSON in UTF-8."""
    given = {str(number): unicode_text(name) for number, name in sorted(names.items())}
    content = {"format": FORMAT, "run": manifest.get("id"), "names": given}
    content[CHECKSUM] = _checksum(content)
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def describe_kept(manifest: Mapping[str, Any]) -> str:
    """Say in a sentence what a run has kept of the one before; nothing if there was none."""
    about = manifest.get("earlier_run") or {}
    n_matched = about.get("n_matched", 0)
    if not n_matched and not about.get("n_given_kept"):
        return ""
    match = "1 group matches one" if n_matched == 1 else f"{n_matched:,} groups match those"
    if n_given := about["n_given_kept"]:
        was = "name that you gave was" if n_given == 1 else "names that you gave were"
        return f"{match} of the run before; {n_given:,} {was} kept."
    n_names = about["n_names_kept"]
    return f"{match} of the run before; {n_names:,} keep{'s' * (n_names == 1)} the name."


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
    return _without_doubt(table, names)


def _without_doubt(table: pa.Table, names: Mapping[int, str]) -> pa.Table:
    """Return a table of clusters in which the user's own names are no guesses."""
    for column, value in (("name_confidence", 1.0), ("guess", False)):
        position = table.schema.get_field_index(column)
        if position >= 0:
            old = zip(table["cluster"].to_pylist(), table[column].to_pylist(), strict=True)
            new = [value if number in names else found for number, found in old]
            field = table.schema.field(position)
            table = table.set_column(position, field, pa.array(new, field.type))
    return table


def _read(file: Path) -> tuple[object, dict[int, str]]:
    """Return the id of the run that names were saved from, and the names.

    A person may have edited the file, so its checksum does not count.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _unusable(printable_path(file), describe_error(error)) from error
    return _parse(content, file, edited=True)


def _parse(content: bytes, file: Path, edited: bool = False) -> tuple[object, dict[int, str]]:
    shown = printable_path(file)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _unusable(shown, "it is not JSON") from error
    if not isinstance(found, dict) or not isinstance(found.get("names"), dict):
        raise _unusable(shown, 'it has no "names"')
    if found.get("format") != FORMAT:
        raise _unusable(shown, "its format is not known to this version of nouncut")
    names = found["names"]
    checked = dict(_checked(key, name, shown) for key, name in names.items())
    if not edited and CHECKSUM in found and found[CHECKSUM] != _checksum(found):
        raise _unusable(shown, "its checksum is wrong")
    return found.get("run"), checked


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != CHECKSUM}
    return short_digest(json.dumps(rest, sort_keys=True).encode())


def _checked(key: str, name: object, shown: str) -> tuple[int, str]:
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise _unusable(shown, f"{key!r} is not the number of a cluster")
    line = " ".join(unicode_text(name).split()) if isinstance(name, str) else ""
    if not line:
        raise _unusable(shown, f"the name of cluster {key} is empty")
    return int(key), line


def _unusable(shown: str, reason: str) -> InputError:
    return InputError(
        f"{shown} cannot be used as cluster names ({reason}). Save the names again with the "
        "button in the report, or remove the file."
    )


def _is_of(saved: object, manifest: Mapping[str, Any]) -> bool:
    return saved is None or saved == manifest.get("id")
