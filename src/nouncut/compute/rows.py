"""Rows of a matrix: unit length, sums by label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Scale every row to length one, in the floating type of X; all-zero rows stay zero."""
    # Dividing by the largest entry first keeps the squares of huge and tiny rows in range.
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0)
    scaled = X / np.where(largest > 0, largest, 1)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64))[:, None]
    return np.divide(
        scaled, np.where(length > 0, length, 1), dtype=scaled.dtype, casting="same_kind"
    )


def label_matrix(labels: NDArray[Any], n_labels: int | None = None) -> csr_array:
    """Return the sparse (n, n_labels) matrix that is 1 where a row has a label."""
    n = len(labels)
    shape = (n, int(labels.max()) + 1 if n_labels is None else n_labels)
    return csr_array((np.ones(n), labels, np.arange(n + 1)), shape=shape)
