"""Checks of parameters, and warnings, that several packages share."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from nouncut.errors import ParameterError


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless a parameter has one of its permitted values."""
    if not isinstance(value, str) or value not in choices:
        permitted = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"`{name}` must be one of {permitted}; got {value!r}.")


def check_positive(values: Mapping[str, object], kind: type) -> None:
    """Raise unless parameters are positive, finite numbers of a kind (Integral or Real)."""
    wanted = "a whole number of at least 1" if kind is Integral else "a number above 0"
    for name, value in values.items():
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if not is_number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
            raise ParameterError(f"`{name}` must be {wanted}; got {value!r}.")


def check_weight(name: str, value: object) -> None:
    """Raise unless a parameter is "auto" or a number from 0 to 1."""
    if isinstance(value, str) and value == "auto":
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise ParameterError(f'`{name}` must be "auto" or a number from 0 to 1; got {value!r}.')


def check_nouns(nouns: Sequence[str], n_nouns: int) -> list[str]:
    """Return the nouns as a list; raise unless there is one per row of noun features."""
    if len(nouns) != n_nouns:
        raise ParameterError(
            f"`nouns` has {len(nouns)} words, but `noun_features` has {n_nouns} rows."
        )
    return [str(noun) for noun in nouns]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and show the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("nouncut."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
