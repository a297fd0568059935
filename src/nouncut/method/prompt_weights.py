"""How much every prompt counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def simplex_weights(losses: ArrayLike, lam: float) -> NDArray[np.float64]:
    """Return the weights that minimise ``weights . losses + lambda/2 ||weights||^2``.

    The minimiser over all weights that are positive and sum to one is the projection of
    ``-losses / lambda`` on the simplex. The weights of the paper's Appendix G are its closed form.
    """
    # The projection ignores a common shift; taking the smallest loss off keeps digits.
    point = np.asarray(losses, dtype=np.float64)
    point = (point.min() - point) / lam
    descending = np.sort(point)[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, len(point) + 1)
    positive = np.flatnonzero(descending + shifts > 0)[-1]
    weights: NDArray[np.float64] = np.maximum(point + shifts[positive], 0)
    return np.asarray(weights / weights.sum())
