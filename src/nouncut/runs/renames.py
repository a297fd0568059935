"""Names that the user gave to clusters.

The report saves them as a small JSON file::

    {"format": 1, "run": "0f3a...", "names": {"0": "My cats", "3": "Holidays"}}

``run`` is the id of the run that they belong to, and optional. Earlier versions kept such a file,
some with a ``checksum``, in the run directory; its names are the first edit of the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, describe_error, printable_path
from nouncut.runs.checksums import open_inside, short_digest
from nouncut.runs.manifest_fields import CHECKSUM
from nouncut.runs.tables import unicode_text

NAMES, EARLIER_NAMES = "names.json", "earlier-names.json"
FORMAT = 1
_MOST_BYTES = 64 * 2**20


def read_names(
    file: AnyPath, manifest: Mapping[str, Any], clusters: Container[int] | None = None
) -> dict[int, str]:
    """Read names by cluster number, and check that they suit the clusters of a run."""
    saved, names = _read(Path(file))
    return _suitable(file, saved, names, manifest, clusters)


def _suitable(
    file: AnyPath,
    saved: object,
    names: dict[int, str],
    manifest: Mapping[str, Any],
    clusters: Container[int] | None = None,
) -> dict[int, str]:
    """Return names if they suit the run of a manifest; `clusters` are the computed ones if None."""
    shown = printable_path(file)
    if not _is_of(saved, manifest):
        raise InputError(
            f"The names in {shown} were saved from the report of another run, whose clusters may "
            'differ. To use them anyway, remove "run" from the file.'
        )
    known = range(int(manifest["n_clusters"])) if clusters is None else clusters
    if unknown := [number for number in names if number not in known]:
        raise InputError(
            f"{shown} names cluster {unknown[0]}, which the run does not have. Build its report "
            "again, and save the names from there."
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


def describe_kept(manifest: Mapping[str, Any]) -> str:
    """Say in a sentence what a run has kept of the one before; nothing if there was none."""
    about = manifest.get("earlier_run") or {}
    n_matched = about.get("n_matched", 0)
    if not n_matched and not about.get("n_given_kept"):
        return ""
    match = "1 group matches one" if n_matched == 1 else f"{n_matched:,} groups match those"
    n_given, n_edits = about["n_given_kept"], about.get("n_edits_kept", 0)
    kept = []
    if n_given:
        kept.append(f"{n_given:,} name{'s' * (n_given != 1)} that you gave")
    if n_edits:
        kept.append(f"{n_edits:,} other edit{'s' * (n_edits != 1)}")
    if kept:
        was = "was" if n_given + n_edits == 1 else "were"
        return f"{match} of the run before; {' and '.join(kept)} {was} kept."
    n_names = about["n_names_kept"]
    return f"{match} of the run before; {n_names:,} keep{'s' * (n_names == 1)} the name."


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
