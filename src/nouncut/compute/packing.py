"""Rows of non-negative numbers in half the memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

_LARGEST = np.float32(65535)


class PackedRows(NamedTuple):
    """Rows as whole numbers, with what a one stands for."""

    numbers: NDArray[np.uint16]
    units: NDArray[np.float32]


def empty_rows(n: int, k: int) -> PackedRows:
    """Return room for packed rows."""
    return PackedRows(np.empty((n, k), np.uint16), np.empty(n, np.float32))


def pack_rows(X: NDArray[np.float32], out: PackedRows, first: int = 0) -> None:
    """Pack rows: every number keeps its value to 1/131,070 of the largest in its row.

    Inner products of rows depend on their large numbers. Sixteen bits of a floating number would
    keep three digits of each, which is not enough to rank the many near images of an image.
    """
    last = first + len(X)
    _compiled_pack(X, out.numbers[first:last], out.units[first:last])


def _pack(X: Any, numbers: Any, units: Any) -> None:
    for row in range(X.shape[0]):
        largest = np.float32(0)
        for column in range(X.shape[1]):
            largest = max(largest, X[row, column])
        units[row] = largest / _LARGEST
        factor = _LARGEST / largest if largest > 0 else np.float32(0)
        for column in range(X.shape[1]):
            numbers[row, column] = np.uint16(X[row, column] * factor + np.float32(0.5))


_compiled_pack = njit(nogil=True, cache=True)(_pack)
