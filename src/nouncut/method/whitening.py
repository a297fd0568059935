"""Half-whitening: principal components whose variances are brought closer together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from nouncut.compute.rows import Projection
from nouncut.compute.threads import blas_threads

# From 96 components on, clusters are about as right (``benchmarks/whitening.py``), and few take
# less time and memory.
N_COMPONENTS = 128
# Components this much smaller than the first are rounding errors.
_ROUNDING = 1e-6
_ROWS_AT_ONCE = 4096


def half_whitening(X: NDArray[Any], n_components: int = N_COMPONENTS) -> Projection:
    """Return the projection on principal components, each divided by the root of its deviation.

    The first few components of visual features tell lighting, background and broad kinds apart, and
    dominate cosines; full whitening would make noise as loud as they are. Half-whitening lies in
    the middle: the standard deviation of every component becomes its root.

    Parameters
    ----------
    X : ndarray of shape (n_images, d)
        Visual features.
    n_components : int, default=128
        The most components to keep.

    Returns
    -------
    Projection
        Applies to new images as well.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.whitening import half_whitening
    >>> X = np.random.default_rng(0).normal(size=(1000, 2)) * [9, 1]
    >>> half_whitening(X)(X).std(axis=0).round(1)
    array([3., 1.], dtype=float32)
    """
    n_images, width = X.shape
    center = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    with blas_threads(1):
        if n_images <= width:
            rows = X.astype(np.float64) - center
            values, vectors = _largest(rows @ rows.T, n_components)
            axes = rows.T @ vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
        else:
            values, axes = _largest(_scatter(X, center), n_components)
    deviations = np.sqrt(np.maximum(values, 0) / n_images)
    kept = deviations > _ROUNDING * max(deviations[0], np.finfo(float).tiny)
    kept[0] = True
    scales = np.sqrt(np.where(deviations[kept] > 0, deviations[kept], 1))
    return Projection(center, (axes[:, kept] / scales).astype(np.float32))


def _scatter(X: NDArray[Any], center: NDArray[Any]) -> NDArray[np.float64]:
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = X[start : start + _ROWS_AT_ONCE].astype(np.float64) - center
        total += rows.T @ rows
    return total


def _largest(matrix: NDArray[np.float64], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the k largest eigenvalues of a symmetric matrix, in descending order, and vectors."""
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(max(0, n - k), n - 1))
    return values[::-1], vectors[:, ::-1]
