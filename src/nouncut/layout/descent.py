"""From a start to a map: neighbours pull, everyone pushes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.progress import Progress
from nouncut.compute.threads import run_tasks
from nouncut.layout.repulsion import repel

# Steps, how much stronger pulls are than t-SNE's, and momentum. Strong pulls at first let
# neighbours find each other through the crowd; weak ones at last let small clusters, all of whose
# images are neighbours, be more than a point.
_PHASES = ((100, 4.0, 0.5), (250, 0.8, 0.8))
# A weak pull to the middle, without which parts that nothing ties together would drift away.
_GRAVITY = 1e-4
# Points that keep their direction speed up, others slow down.
_FASTER, _SLOWER, _SLOWEST = np.float32(0.2), np.float32(0.8), np.float32(0.01)
# Furthest move in one step.
_STRIDE = np.float32(5)
# Points that strong pulls have put at one place are parted again.
_SHAKE = 0.05
_ROWS_AT_ONCE = 1024


def descend(
    start: NDArray[np.float32],
    pulls: csr_array,
    rng: np.random.RandomState,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Move points until those that pull each other are near.

    Gradient descent on the objective of t-SNE, with `pulls` as the affinities.
    """
    n = len(start)
    shares = (pulls.data / max(pulls.data.sum(), np.finfo(np.float64).tiny)).astype(np.float32)
    positions, pulled = start.copy(), np.empty_like(start)
    velocity, gains = np.zeros_like(start), np.ones(n, dtype=np.float32)

    def pull(first: int) -> None:
        rows = first, min(first + _ROWS_AT_ONCE, n)
        _pull_rows(pulls.indptr, pulls.indices, shares, positions, pulled, *rows)

    n_steps, done = sum(phase[0] for phase in _PHASES), 0
    for n_phase_steps, exaggeration, momentum in _PHASES:
        rate = 4 * n / max(exaggeration, 1)
        positions += (_SHAKE * rng.normal(size=positions.shape)).astype(np.float32)
        for _ in range(n_phase_steps):
            run_tasks(pull, range(0, n, _ROWS_AT_ONCE), n_threads)
            push = repel(positions, n_threads)
            slope = np.float32(rate * exaggeration) * pulled
            slope += np.float32(rate / push.total) * push.forces
            slope -= np.float32(rate * _GRAVITY / n) * positions
            _move(positions, velocity, gains, slope, np.float32(momentum))
            done += 1
            if progress:
                progress("placing images", done, n_steps)
    return positions


@njit(nogil=True, cache=True)
def _pull_rows(
    indptr: Any, indices: Any, shares: Any, positions: Any, pulled: Any, first: int, last: int
) -> None:
    for row in range(first, last):
        here_x, here_y = positions[row, 0], positions[row, 1]
        pull_x, pull_y = np.float32(0), np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            x = positions[indices[entry], 0] - here_x
            y = positions[indices[entry], 1] - here_y
            strength = shares[entry] / (np.float32(1) + x * x + y * y)
            pull_x += strength * x
            pull_y += strength * y
        pulled[row, 0] = pull_x
        pulled[row, 1] = pull_y


@njit(nogil=True, cache=True)
def _move(positions: Any, velocity: Any, gains: Any, slope: Any, momentum: Any) -> None:
    for row in range(len(positions)):
        agreement = slope[row, 0] * velocity[row, 0] + slope[row, 1] * velocity[row, 1]
        gain = gains[row] + _FASTER if agreement >= 0 else max(gains[row] * _SLOWER, _SLOWEST)
        gains[row] = gain
        for axis in range(2):
            speed = momentum * velocity[row, axis] + gain * slope[row, axis]
            velocity[row, axis] = min(max(speed, -_STRIDE), _STRIDE)
            positions[row, axis] += velocity[row, axis]
