"""Functions of a sparse symmetric matrix, applied to vectors by Chebyshev series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.sparse import apply_series

Function = Callable[[NDArray[Any]], NDArray[Any]]
_MAX_DEGREE = 64
# A series needs an interval of some width, even if all eigenvalues are equal.
_NARROWEST = 1e-3
_MOST_NOISE = 1e-2


def apply_functions(
    functions: Sequence[Function],
    S: csr_array,
    block: NDArray[Any],
    interval: tuple[float, float],
    *,
    tol: float = 1e-5,
    n_threads: int = 1,
) -> list[NDArray[Any]]:
    """Return ``f(S) @ block`` for every function f; `interval` holds S's relevant eigenvalues."""
    series, interval = chebyshev_series(functions, interval, np.finfo(block.dtype).eps, tol)
    # One recurrence, that is one sparse product per degree, serves all functions.
    return apply_series(S, block, series, interval, n_threads)


def chebyshev_series(
    functions: Sequence[Function],
    interval: tuple[float, float],
    rounding: float,
    tol: float = 1e-5,
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return the series (n_functions, degree + 1) of functions, and the interval they are for."""
    low, high = interval
    interval = low, max(high, low + _NARROWEST)
    series = _expand(functions, interval, tol)
    if _grows_too_much(series.shape[1] - 1, interval, rounding):
        interval = low, max(1.0, low + _NARROWEST)
        series = _expand(functions, interval, tol)
    return series, interval


def _expand(
    functions: Sequence[Function], interval: tuple[float, float], tol: float
) -> NDArray[np.float64]:
    """Return the functions' Chebyshev series, cut off where coefficients fall below `tol`."""
    series = np.array(
        [
            chebyshev.chebinterpolate(partial(_on_unit_interval, function, interval), _MAX_DEGREE)
            for function in functions
        ]
    )
    degree = int(np.flatnonzero((np.abs(series) > tol).any(axis=0)).max(initial=1))
    return series[:, : degree + 1]


def _grows_too_much(degree: int, interval: tuple[float, float], rounding: float) -> bool:
    """Tell whether rounding errors along eigenvalues up to 1 would swamp the result."""
    low, high = interval
    reach = max(1.0, (2 - low - high) / (high - low))
    return bool(degree * np.arccosh(reach) + np.log(rounding) > np.log(_MOST_NOISE))


def _on_unit_interval(function: Function, interval: tuple[float, float], t: NDArray[Any]) -> Any:
    low, high = interval
    return function((high + low) / 2 + (high - low) / 2 * t)
