"""Copies of images: equal rows of features, found by hashing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_ONCE = 4096


def find_originals(*parts: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the first image with the same rows for every image; itself if it is no copy."""
    _, first, inverse = np.unique(_row_keys(parts), return_index=True, return_inverse=True)
    originals = first[inverse]
    # Different rows with the same key are not copies.
    same = _equal_rows(parts, np.arange(len(originals)), parts, originals)
    return np.where(same, originals, np.arange(len(originals)))


def match_rows(
    known: tuple[NDArray[np.float32], ...], queries: tuple[NDArray[np.float32], ...]
) -> NDArray[np.intp]:
    """Return the known image with the same rows for every query; -1 if there is none."""
    keys = _row_keys(known)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], _row_keys(queries))
    candidates = order[np.minimum(at, len(order) - 1)]
    same = _equal_rows(queries, np.arange(len(candidates)), known, candidates)
    return np.where(same, candidates, -1)


def _row_keys(parts: tuple[NDArray[np.float32], ...]) -> NDArray[np.uint64]:
    """Hash rows: the sum modulo 2^64 of their bits times random odd numbers."""
    keys = np.zeros(len(parts[0]), np.uint64)
    rng = np.random.default_rng(0)
    for part in parts:
        factors = rng.integers(0, 2**63, part.shape[1], dtype=np.uint64) * np.uint64(2)
        factors += np.uint64(1)
        for first in range(0, len(part), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            # Adding zero turns -0.0 into 0.0.
            bits = (np.ascontiguousarray(part[rows], np.float32) + 0).view(np.uint32)
            keys[rows] += (bits * factors).sum(axis=1, dtype=np.uint64)
    return keys


def _equal_rows(
    parts: tuple[NDArray[Any], ...],
    rows: NDArray[np.intp],
    others: tuple[NDArray[Any], ...],
    other_rows: NDArray[np.intp],
) -> NDArray[np.bool_]:
    same = np.ones(len(rows), bool)
    for part, other in zip(parts, others, strict=True):
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            at = slice(first, first + _ROWS_AT_ONCE)
            same[at] &= (part[rows[at]] == other[other_rows[at]]).all(axis=1)
    return same
