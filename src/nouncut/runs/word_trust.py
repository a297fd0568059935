"""What the words of a run are worth, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Weights of the words from which on they count as much as looks, or hardly.
_MUCH, _LITTLE = 2 / 3, 1 / 3


def describe_trust(manifest: Mapping[str, Any]) -> str | None:
    """Return how far words decided the groups of a run; None if the run did not judge them."""
    trust = manifest.get("noun_trust")
    if not trust:
        return None
    weight = float(trust["weight"])
    if weight >= _MUCH:
        return "The model knows what is in these pictures: groups follow looks and words."
    if weight > _LITTLE:
        return (
            "The model knows part of what is in these pictures: groups follow looks more than "
            "words."
        )
    return "The model knows little of what is in these pictures: groups follow looks, not words."
