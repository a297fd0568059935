"""Products of tall dense matrices, the same to the last bit for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import blas_threads, run_tasks

_ROWS_AT_ONCE = 2048
# Partial sums of inner products.
_N_PARTS = 8


def inner_products(
    X: NDArray[Any],
    Y: NDArray[Any] | None = None,
    n_threads: int = 1,
    *,
    multiply_in: type[np.floating[Any]] = np.float64,
) -> NDArray[np.float64]:
    """Return ``X^T Y`` (or ``X^T X``), summed in double precision."""
    n, k = X.shape
    m = k if Y is None else Y.shape[1]
    length = max(_ROWS_AT_ONCE, -(-n // _N_PARTS))
    parts = np.zeros((-(-n // length), k, m))

    def add(part: int) -> None:
        for first in range(part * length, min(n, (part + 1) * length), _ROWS_AT_ONCE):
            rows = slice(first, min(first + _ROWS_AT_ONCE, (part + 1) * length))
            left = X[rows].astype(multiply_in, copy=False)
            right = left if Y is None else Y[rows].astype(multiply_in, copy=False)
            parts[part] += left.T @ right

    with blas_threads(1):
        run_tasks(add, range(len(parts)), n_threads)
    return np.asarray(parts.sum(axis=0))


def tall_product(
    X: NDArray[Any],
    R: NDArray[Any],
    n_threads: int = 1,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return ``X R`` for a small R, in the precision of X; `out` may be X itself."""
    R = np.ascontiguousarray(R, dtype=X.dtype)
    result = np.empty((len(X), R.shape[1]), dtype=X.dtype) if out is None else out

    def multiply(first: int) -> None:
        rows = slice(first, first + _ROWS_AT_ONCE)
        result[rows] = X[rows] @ R

    with blas_threads(1):
        run_tasks(multiply, range(0, len(X), _ROWS_AT_ONCE), n_threads)
    return result
