"""The types of the manifest's fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CHECKSUM, FILES = "checksum", "files"

# A pattern is a type or None, a tuple of alternatives, a list of one pattern for all items or of
# one for each, or a dict of patterns by name; names that end in "?" may be missing, and `str`
# stands for all other names.
_NUMBER = float
_SCALARS = (str, bool, int, _NUMBER, None)
_TEXTS = [str]
_FIELDS: dict[str, Any] = {
    "nouncut": str,
    "id": str,
    "started": str,
    "finished": str,
    "digest": str,
    "content": str,
    "source": _TEXTS,
    "source_kind": str,
    "n_images": int,
    "n_clusters": int,
    "n_skipped": int,
    "n_encoded": int,
    "n_outliers": int,
    "n_copies": int,
    "arrays": _TEXTS,
    "parts": {"assignments?": int, "images?": int, "looks?": int, "meaning?": int},
    "sample": {"id": str, "n_images": int},
    FILES: {str: str},
    "settings": {"levels?": ([int], None), str: (*_SCALARS, _TEXTS)},
    "used": {str: _SCALARS},
    "machine": {str: _SCALARS},
    "seconds": {str: _NUMBER},
    "warnings": _TEXTS,
    "model": {
        "name": (str, None),
        "fingerprint?": (str, None),
        "embedded?": bool,
        "reason?": (str, None),
    },
    "looks": [{"name": str, "fingerprint": str}],
    "nouns": {"words": _TEXTS, "candidates?": int},
    "prompts": [{"template": str, "weight": _NUMBER}],
    "noun_trust": {"weight": _NUMBER},
    "cluster_count": {
        "n_clusters?": int,
        "candidates?": [[int, _NUMBER]],
        "confidence?": _NUMBER,
    },
    "tree": {"sizes": [int], "levels": [[int]]},
    "objective": [_NUMBER],
    "weight_steps": [[_NUMBER]],
    "eigenvalues": [_NUMBER],
    "tau": _NUMBER,
    "solver": str,
    "n_neighbors": int,
    "membership_temperature": _NUMBER,
    "least_familiarity": _NUMBER,
    "earlier_run": {
        "id": (str, None),
        "n_matched": int,
        "n_names_kept": int,
        "n_given_kept": int,
        "n_edits_kept?": int,
        "edits_dropped?": _TEXTS,
    },
    "changes": {
        "n_new": int,
        "n_gone": int,
        "n_changed": int,
        "n_renamed": int,
        "n_moved": int,
        "reclustered": bool,
        "groups": [{"cluster": int, "name": str, "before": int, "after": int}],
        "n_names_kept": int,
        "n_edits_kept": int,
        "edits_dropped": _TEXTS,
        "n_unfamiliar": int,
        "unfamiliar": _TEXTS,
        "proposals": [{"name": str, "n_images": int, "paths": _TEXTS, "made": bool}],
        "why_recluster": str,
    },
    "unmatched_names": [{"name": str, "images": _TEXTS}],
}

_LARGEST = 2**53


def wrong_field(manifest: Mapping[str, Any]) -> str | None:
    """Return the name of a field whose value no reader expects; fields may be missing or null."""
    for name, pattern in _FIELDS.items():
        if manifest.get(name) is not None and not _fits(manifest[name], pattern):
            return name
    return None


def _fits(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, tuple):
        return any(_fits(value, one) for one in pattern)
    if isinstance(pattern, list):
        return isinstance(value, list) and _items_fit(value, pattern)
    if isinstance(pattern, dict):
        return isinstance(value, dict) and _names_fit(value, pattern)
    if pattern is None:
        return value is None
    if pattern is _NUMBER:
        # Numbers that are not finite are written as null.
        return value is None or (type(value) in (int, float) and abs(value) < math.inf)
    if pattern is int:
        return type(value) is int and 0 <= value < _LARGEST
    return isinstance(value, pattern)


def _items_fit(values: list[Any], patterns: list[Any]) -> bool:
    if len(patterns) == 1:
        return all(_fits(value, patterns[0]) for value in values)
    return len(values) == len(patterns) and all(map(_fits, values, patterns))


def _names_fit(values: dict[str, Any], patterns: dict[Any, Any]) -> bool:
    named = {name.removesuffix("?"): one for name, one in patterns.items() if name is not str}
    required = {name for name in named if name in patterns}
    return required <= values.keys() and all(
        _fits(value, named.get(name, patterns.get(str, object))) for name, value in values.items()
    )
