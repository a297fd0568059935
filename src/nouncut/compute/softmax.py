"""The softmax of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# At lower temperatures nothing changes: the maximum has all the weight.
_COLDEST = 1e-30
# Rows are processed in parts that stay in the cache.
_NUMBERS_AT_ONCE = 1 << 17


def softmax_rows(X: NDArray[Any], tau: float) -> None:
    """Replace every row x by ``softmax(x / tau)``, in place."""
    factor = X.dtype.type(1 / max(tau, _COLDEST))
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for first in range(0, len(X), at_once):
        rows = X[first : first + at_once]
        rows -= rows.max(axis=1, keepdims=True)
        rows *= factor
        np.exp(rows, out=rows)
        rows *= 1 / rows.sum(axis=1, keepdims=True)
