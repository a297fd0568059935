"""Rows of a matrix: unit length, labels as a matrix, the principal plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import blas_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS_AT_ONCE = 4096


class Projection(NamedTuple):
    """A linear view of features: rows relative to a centre, projected on a basis."""

    center: NDArray[np.float32]  # (d,)
    basis: NDArray[np.float32]  # (d, n_components)

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Project (n, d) rows."""
        found = np.empty((len(rows), self.basis.shape[1]), np.float32)
        # The threads of BLAS change the last digits.
        with blas_threads(1):
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                part = slice(start, start + _ROWS_AT_ONCE)
                centred = np.subtract(rows[part], self.center, dtype=np.float32)
                np.matmul(centred, self.basis, out=found[part])
        return found

    def lengths(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the lengths of (n, d) rows relative to the centre."""
        found = np.linalg.norm(np.subtract(rows, self.center, dtype=np.float32), axis=1)
        return np.asarray(found)

    def cosine_rows(self, seen: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.float32]:
        """Return rows whose inner products are cosines in the space before the projection.

        `seen` are projected rows. What the projection leaves out counts in the lengths, so rows
        that it hardly shows are like no others.
        """
        scale = np.linalg.norm(self.basis, axis=0) * np.where(lengths > 0, lengths, 1)[:, None]
        return np.asarray(seen / scale, np.float32)


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Scale every row to length one, in the floating type of X; all-zero rows stay zero."""
    units = np.empty(X.shape, np.result_type(X, np.float16))
    # In blocks: the intermediate results of all rows would take twice the memory of X.
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = X[start : start + _ROWS_AT_ONCE]
        # Dividing by the largest entry first keeps the squares of huge and tiny rows in range.
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
        scaled = rows / np.where(largest > 0, largest, 1)
        length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64))[:, None]
        np.divide(
            scaled,
            np.where(length > 0, length, 1),
            out=units[start : start + len(rows)],
            dtype=scaled.dtype,
            casting="same_kind",
        )
    return units


def spaced_rows(n_rows: int, size: int, start: int, stop: int) -> NDArray[np.int64]:
    """Return which of some evenly spaced rows lie from `start` to `stop`, counted from there."""
    every = np.unique(np.linspace(0, n_rows - 1, min(n_rows, size)).astype(np.int64))
    return every[(every >= start) & (every < stop)] - start


def join_rows(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return rows side by side, so that their cosine is the mean of the parts' cosines."""
    return parts[0] if len(parts) == 1 else np.hstack([unit_rows(part) for part in parts])


def label_matrix(labels: NDArray[Any], n_labels: int | None = None) -> csr_array:
    """Return the sparse (n, n_labels) matrix that is 1 where a row has a label."""
    # SciPy is slow to import, and encoders need only unit rows.
    from scipy.sparse import csr_array

    n = len(labels)
    shape = (n, int(labels.max()) + 1 if n_labels is None else n_labels)
    return csr_array((np.ones(n), labels, np.arange(n + 1)), shape=shape)


def principal_plane(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the first two principal components; rows may be memory-mapped."""
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    mean = np.mean(rows, axis=0, dtype=np.float64)
    scatter = np.zeros((rows.shape[1], rows.shape[1]))
    for start in starts:
        part = np.nan_to_num(rows[start : start + _ROWS_AT_ONCE] - mean)
        scatter += part.T @ part
    axes = np.linalg.eigh(scatter)[1][:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary; a fixed one makes maps repeatable.
    axes *= np.where(axes.sum(axis=0) < 0, -1, 1)
    plane = np.zeros((len(rows), 2))
    for start in starts:
        part = np.nan_to_num(rows[start : start + _ROWS_AT_ONCE] - mean)
        plane[start : start + len(part), : axes.shape[1]] = part @ axes
    return plane
