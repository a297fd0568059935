"""Checks of vectors before they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.compute.checks import check_choice
from nouncut.errors import InputError, ParameterError
from nouncut.store.database import DTYPES, Space


def check_rows(keys: Sequence[str], rows: ArrayLike, dtype: str | None) -> NDArray[Any]:
    """Return rows as a finite array of shape (n_keys, dim); raise if they cannot be stored."""
    if dtype is not None:
        check_choice("dtype", dtype, tuple(DTYPES))
    checked = np.asarray(rows)
    if checked.dtype.kind != "f":
        checked = checked.astype(np.float32)
    if checked.ndim != 2 or len(checked) != len(keys):
        raise ParameterError(
            f"`rows` has the shape {checked.shape}, but {len(keys)} keys need the shape "
            f"({len(keys)}, dim)."
        )
    if len(checked) and not checked.shape[1]:
        raise ParameterError("`rows` has no columns: a vector needs at least one value.")
    unfit = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if len(unfit):
        raise InputError(
            f"{len(unfit)} of {len(checked)} rows hold NaN or infinite values, the first for key "
            f"{keys[unfit[0]]!r}. They are not stored: leave them out or encode them again."
        )
    return checked


def check_space(space: Space, dtype: str | None, dim: int) -> None:
    """Raise unless rows of a type and length fit a space."""
    if dim != space.dim:
        raise ParameterError(
            f"Space {space.name!r} holds vectors of length {space.dim}; got {dim}. Use another "
            "space for another model or setting."
        )
    if dtype not in (None, space.dtype):
        raise ParameterError(
            f"Space {space.name!r} is stored as {space.dtype}, not {dtype}. Leave out `dtype`, or "
            "remove the space first with prune."
        )


def convert_rows(rows: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Convert finite rows to the type they are stored as."""
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(rows, dtype=DTYPES[dtype])
    if not np.isfinite(converted).all():
        remedy = "Store this space as float32." if dtype == "float16" else "Rescale them."
        raise InputError(
            f"The rows hold values up to {np.abs(rows).max():g}, too large for {dtype}. {remedy}"
        )
    return converted
