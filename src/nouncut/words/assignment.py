"""One name for every cluster and one cluster for every name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

_TIE = 1e-3
_TINY = np.finfo(np.float64).tiny


def assign_names(scores: NDArray[Any], worst_ratio: float = 0.01) -> NDArray[np.intp]:
    """Give every cluster a name of its own so that all of them fit as well as possible."""
    n_clusters, n_names = scores.shape
    if not n_names:
        return np.full(n_clusters, -1, dtype=np.intp)
    # Best to 1: a cluster's choice depends on ratios alone.
    best = scores.max(axis=1, keepdims=True)
    ratios = scores / np.where(best > 0, best, 1)
    fits = ratios > worst_ratio
    # One more column per cluster stands for no name.
    costs = np.empty((n_clusters, n_names + n_clusters))
    # Of clusters that could as well share a name, the one that it fits best is to have it.
    costs[:, n_names:] = -np.log(worst_ratio) + _TIE * best / max(best.max(), _TINY)
    costs[:, :n_names] = np.where(
        fits, -np.log(np.where(fits, ratios, 1)), -10 * np.log(worst_ratio)
    )
    _, chosen = linear_sum_assignment(costs)
    return np.where(chosen < n_names, chosen, -1)
