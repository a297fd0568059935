"""Where every image lies on the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.runs.run import Run


def map_positions(run: Run) -> NDArray[np.float32] | None:
    """Return the places of all images on the map, within the unit square."""
    points = run.map()
    return None if points is None else fitted(points)


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
