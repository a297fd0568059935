"""The softmax of rows, compiled for single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# 2^x = 2^n 2^f with f within half of zero, and the series of 2^f up to the sixth power:
# the relative error is below 2e-7.
_LOG2_E = np.float32(np.log2(np.e))
_C1, _C2, _C3 = (np.float32(c) for c in (np.log(2), np.log(2) ** 2 / 2, np.log(2) ** 3 / 6))
_C4, _C5 = np.float32(np.log(2) ** 4 / 24), np.float32(np.log(2) ** 5 / 120)
_C6 = np.float32(np.log(2) ** 6 / 720)
_ONE = np.float32(1)
# At lower temperatures nothing changes: the maximum has all the weight.
_COLDEST = 1e-30
# The smallest normal power of two.
_LOWEST = np.float32(-126)


def softmax_rows(X: NDArray[Any], tau: float) -> None:
    """Replace every row x by ``softmax(x / tau)``, in place."""
    tau = max(tau, _COLDEST)
    if X.dtype == np.float32:
        _softmax(X, np.float32(_LOG2_E / tau))
        return
    X -= X.max(axis=1, keepdims=True)
    X /= X.dtype.type(tau)
    np.exp(X, out=X)
    X /= X.sum(axis=1, keepdims=True)


# fastmath lets the compiler vectorise the sum of a row, always in the same way.
@njit(nogil=True, cache=True, fastmath=True)
def _softmax(X: Any, factor: Any) -> None:
    for row in range(X.shape[0]):
        largest = X[row, 0]
        for column in range(X.shape[1]):
            largest = max(largest, X[row, column])
        total = np.float32(0)
        for column in range(X.shape[1]):
            power = max(factor * (X[row, column] - largest), _LOWEST)
            whole = np.float32(np.rint(power))
            f = power - whole
            series = _C3 + f * (_C4 + f * (_C5 + f * _C6))
            series = _ONE + f * (_C1 + f * (_C2 + f * series))
            bits = np.uint32(np.int32(np.int32(whole) + np.int32(127)) << np.int32(23))
            value = series * bits.view(np.float32)
            X[row, column] = value
            total += value
        share = _ONE / total
        for column in range(X.shape[1]):
            X[row, column] *= share
