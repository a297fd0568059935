"""Subspace iteration with Chebyshev filters, for vectors wherever their rows are.

One machine holds a block of vectors in memory (`nouncut.compute.eigen`), a cluster in partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from sklearn.exceptions import ConvergenceWarning

from nouncut.compute.checks import warn_user
from nouncut.compute.progress import Progress
from nouncut.compute.threads import blas_threads

# More amplification of the first vector would drown the last ones in its rounding errors.
_AMPLIFICATION: dict[Any, float] = {np.float64: 1e9, np.float32: 1e4}
# Upper end of the damped interval in the first round, when the block is random.
_FIRST_GUESS = 0.3
_MAX_ROUNDS = 60
# Narrowest interval that a filter can damp.
_NARROWEST = 1e-5
# Vectors are locked when their residual is this factor below the tolerance; larger errors would
# disturb the vectors that are kept orthogonal to them.
_MARGIN = 4
# Random vectors that look for missed eigenvectors, their filter steps, and the most searches.
PROBES, _PROBE_STEPS, _SEARCHES = 4, 3, 4
# Shares of the progress: of the rounds, before probes look for missed vectors; of the first round,
# as a guess; of a round at least.
_OF_ROUNDS, _FIRST_STEP, _SMALLEST_STEP = 0.9, 0.2, 0.02
# Called with the share of a round that is done.
Report = Callable[[float], None]


class Subspace(Protocol):
    """A block of vectors on the way to leading eigenvectors, wherever its rows are."""

    kind: type[np.floating[Any]]  # Its precision.
    lowest: float  # No eigenvalue is below it.
    degrees: tuple[int, int]  # The lowest and highest degree of a filter.

    @property
    def width(self) -> int:
        """The number of vectors."""

    def advance(
        self, first: int, degree: int, low: float, high: float, k: int, report: Report
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Filter the columns from `first` on, and replace them by Ritz vectors.

        They are made orthogonal to the columns before. Returns the Ritz values, and the residuals
        of the first k. A round that takes long may report which share of it is done.
        """

    def sort(self, order: NDArray[np.intp]) -> None:
        """Permute the columns."""

    def draw_probes(self) -> None:
        """Draw random vectors beside the block."""

    def advance_probes(self, degree: int, low: float, high: float) -> float:
        """Filter the probes outside of the block's span; return their largest Ritz value."""

    def adopt_probes(self) -> None:
        """Replace the last columns by the probes."""


def iterate_subspace(
    space: Subspace,
    k: int,
    tol: float,
    highest: float | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Iterate a block to leading eigenvectors; repeat if random vectors find a missed one.

    Returns the eigenvalues of all columns. `highest` is the eigenvalue of the last column; None for
    a random block.
    """
    for _ in range(_SEARCHES):
        values = _filtered_iteration(space, k, tol, highest, progress)
        order = np.argsort(-values, kind="stable")
        values = values[order]
        space.sort(order)
        if _largest_outside(space, float(values[k - 1]), progress) <= values[k - 1] + tol:
            break
        space.adopt_probes()
        highest = float(values[-PROBES - 1])
    else:
        warn_user(
            f"Some of the {k} leading eigenvectors may be missing: clusters may be less stable "
            "than they could be.",
            ConvergenceWarning,
        )
    _report(progress, 1)
    return values


def _filtered_iteration(
    space: Subspace, k: int, tol: float, highest: float | None, progress: Progress | None
) -> NDArray[np.float64]:
    """Turn a block into leading eigenvectors and return their eigenvalues.

    Every round damps the eigenvalues below `highest` (None for a random block) and takes
    Rayleigh-Ritz vectors. Accurate leading vectors are locked; the others stay orthogonal to them.
    """
    residual, share, step = np.inf, 0.0, _FIRST_STEP
    values, n_done = np.ones(space.width), 0
    for _ in range(_MAX_ROUNDS):
        if residual < 1:
            # Residuals shrink by about the same factor in every round.
            before, share = share, float(np.log(max(residual, tol)) / np.log(tol))
            step = max(share - before, _SMALLEST_STEP)
        report = partial(_report, progress, _OF_ROUNDS * share, _OF_ROUNDS * min(step, 1 - share))
        report(0)
        if residual <= tol:
            break
        high = _damped_end(space, _FIRST_GUESS if highest is None else highest)
        # Rounding brings locked vectors back until they are removed again. They have eigenvalues
        # up to 1, so what the block itself could bear would make them drown it.
        degree = _filter_degree(space, high, 2 * _AMPLIFICATION[space.kind])
        values[n_done:], residuals = space.advance(
            n_done, degree, space.lowest, high, k - n_done, report
        )
        # A random block's eigenvalues are far too low: those of its first half are nearer.
        highest = values[len(values) // 2 if highest is None else -1]
        residual = float(residuals.max())
        n_done += int(np.argmax(np.append(residuals > tol / _MARGIN, True)))
    else:
        warn_user(
            f"The {k} leading eigenvectors have residuals up to {residual:.1e}, more than "
            f"{tol:.1e}: clusters may be less stable than they could be.",
            ConvergenceWarning,
        )
    return values


def _report(progress: Progress | None, start: float, step: float = 0, done: float = 0) -> None:
    if progress:
        progress("finding eigenvectors", int(100 * (start + step * done)), 100)


def _largest_outside(space: Subspace, level: float, progress: Progress | None) -> float:
    """Turn random probes into leading vectors outside a block's span; return the top value."""
    space.draw_probes()
    high = _damped_end(space, level)
    degree = _filter_degree(space, high, _AMPLIFICATION[space.kind])
    for number in range(_PROBE_STEPS):
        _report(progress, _OF_ROUNDS + (1 - _OF_ROUNDS) * number / _PROBE_STEPS)
        found = space.advance_probes(degree, space.lowest, high)
    return found


def _damped_end(space: Subspace, level: float) -> float:
    """Return the upper end of the interval that a filter damps."""
    return min(max(level, space.lowest + _NARROWEST), 1 - 1e-3)


def _filter_degree(space: Subspace, high: float, amplification: float) -> int:
    most = np.log(amplification) / _growth(1.0, space.lowest, high)
    return int(np.clip(most, *space.degrees))


def _growth(x: float, low: float, high: float) -> float:
    """Return g such that the Chebyshev polynomial of degree m on [low, high] is cosh(m g) at x."""
    beyond = max(x, high + _NARROWEST)
    return float(np.arccosh((2 * beyond - high - low) / (high - low)))


def definite_eigh(
    inner: NDArray[Any], overlap: NDArray[Any], rounding: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve ``inner x = value overlap x`` for symmetric matrices, `overlap` positive definite."""
    with blas_threads(1):
        while True:
            try:
                lower = cholesky(overlap + rounding * np.eye(len(overlap)), lower=True)
                break
            except LinAlgError:
                rounding = max(10 * rounding, 1e-14 * len(overlap))
        half = solve_triangular(lower, inner, lower=True)
        values, vectors = eigh(solve_triangular(lower, half.T, lower=True), driver="evd")
        vectors = solve_triangular(lower, vectors, lower=True, trans="T")
    return values[::-1], vectors[:, ::-1]
