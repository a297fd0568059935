"""Where every image lies on the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.runs.run import Run

_ROWS_AT_ONCE = 4096


def map_positions(run: Run) -> NDArray[np.float32] | None:
    """Return the places of all images on the map."""
    for name in ("layout", "embedding", "features"):
        if run.has_array(name):
            array = run.array(name)
            if len(array) == run.assignments.num_rows and array.ndim == 2 and array.size:
                return fitted(array if array.shape[1] == 2 else principal_plane(array))
    return None


def principal_plane(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Project rows on the two directions in which they differ most."""
    pieces = range(0, len(rows), _ROWS_AT_ONCE)
    mean = np.mean(rows, axis=0, dtype=np.float64)
    spread = np.zeros((rows.shape[1], rows.shape[1]))
    for start in pieces:
        piece = np.nan_to_num(rows[start : start + _ROWS_AT_ONCE] - mean)
        spread += piece.T @ piece
    directions = np.linalg.eigh(spread)[1][:, ::-1][:, :2]
    # A direction is as good as its opposite; the larger entries decide.
    directions *= np.where(directions.sum(axis=0) < 0, -1, 1)
    plane = np.zeros((len(rows), 2))
    for start in pieces:
        piece = np.nan_to_num(rows[start : start + _ROWS_AT_ONCE] - mean)
        plane[start : start + len(piece), : directions.shape[1]] = piece @ directions
    return plane


def fitted(places: NDArray[Any]) -> NDArray[np.float32]:
    """Fit places into the unit square, without changing the shape of the whole."""
    known = np.isfinite(places).all(axis=1)
    inside = np.full(places.shape, 0.5, dtype=np.float32)
    if known.any():
        there = places[known].astype(np.float64)
        low, high = there.min(axis=0), there.max(axis=0)
        size = float((high - low).max()) or 1.0
        inside[known] = (0.5 + (there - (low + high) / 2) / size).clip(0, 1)
    return inside
