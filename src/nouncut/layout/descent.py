"""Gradient descent of t-SNE: neighbours attract each other, all images repel each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.progress import Progress
from nouncut.compute.threads import run_tasks
from nouncut.layout.repulsion import repel

# Steps, exaggeration of the attraction, and momentum of both phases. Strong attraction first
# brings neighbours together past all others. Weak attraction then keeps small clusters, whose
# images are all neighbours, from shrinking to a point.
_PHASES = ((100, 4.0, 0.5), (250, 0.8, 0.8))
# A weak attraction to the centre keeps separate components of the graph from drifting away.
_GRAVITY = 1e-4
# Points that keep their direction speed up, others slow down.
_FASTER, _SLOWER, _SLOWEST = np.float32(0.2), np.float32(0.8), np.float32(0.01)
# Longest move along an axis in one step.
_LONGEST_MOVE = np.float32(5)
# Noise at the start of a phase separates points that lie on top of each other.
_NOISE = 0.05
_ROWS_AT_ONCE = 1024


def descend(
    start: NDArray[np.float32],
    affinities: csr_array,
    rng: np.random.RandomState,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Return (n, 2) positions that minimise t-SNE's objective for symmetric (n, n) affinities."""
    n = len(start)
    total = max(affinities.data.sum(), np.finfo(np.float64).tiny)
    shares = (affinities.data / total).astype(np.float32)
    positions, attraction = start.copy(), np.empty_like(start)
    velocity, gains = np.zeros_like(start), np.ones(n, dtype=np.float32)

    def attract(first: int) -> None:
        rows = first, min(first + _ROWS_AT_ONCE, n)
        _attract_rows(affinities.indptr, affinities.indices, shares, positions, attraction, *rows)

    n_steps, done = sum(phase[0] for phase in _PHASES), 0
    for n_phase_steps, exaggeration, momentum in _PHASES:
        rate = 4 * n / max(exaggeration, 1)
        positions += (_NOISE * rng.normal(size=positions.shape)).astype(np.float32)
        for _ in range(n_phase_steps):
            run_tasks(attract, range(0, n, _ROWS_AT_ONCE), n_threads)
            repulsion = repel(positions, n_threads)
            step = np.float32(rate * exaggeration) * attraction
            step += np.float32(rate / repulsion.total) * repulsion.forces
            step -= np.float32(rate * _GRAVITY / n) * positions
            _move(positions, velocity, gains, step, np.float32(momentum))
            done += 1
            if progress:
                progress("placing images", done, n_steps)
    return positions


@njit(nogil=True, cache=True)
def _attract_rows(
    indptr: Any, indices: Any, shares: Any, positions: Any, attraction: Any, first: int, last: int
) -> None:
    for row in range(first, last):
        here_x, here_y = positions[row, 0], positions[row, 1]
        force_x, force_y = np.float32(0), np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            x = positions[indices[entry], 0] - here_x
            y = positions[indices[entry], 1] - here_y
            strength = shares[entry] / (np.float32(1) + x * x + y * y)
            force_x += strength * x
            force_y += strength * y
        attraction[row, 0] = force_x
        attraction[row, 1] = force_y


@njit(nogil=True, cache=True)
def _move(positions: Any, velocity: Any, gains: Any, step: Any, momentum: Any) -> None:
    for row in range(len(positions)):
        agreement = step[row, 0] * velocity[row, 0] + step[row, 1] * velocity[row, 1]
        gain = gains[row] + _FASTER if agreement >= 0 else max(gains[row] * _SLOWER, _SLOWEST)
        gains[row] = gain
        for axis in range(2):
            speed = momentum * velocity[row, axis] + gain * step[row, axis]
            velocity[row, axis] = min(max(speed, -_LONGEST_MOVE), _LONGEST_MOVE)
            positions[row, axis] += velocity[row, axis]
