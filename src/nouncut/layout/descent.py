"""Gradient descent of t-SNE: neighbours attract each other, all images repel each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from nouncut.compute.progress import Progress
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
    springs = _springs(affinities)
    positions = np.ascontiguousarray(start.T)
    velocity, gains = np.zeros_like(positions), np.ones(n, dtype=np.float32)
    n_steps, done = sum(phase[0] for phase in _PHASES), 0
    for n_phase_steps, exaggeration, momentum in _PHASES:
        rate = 4 * n / max(exaggeration, 1)
        positions += (_NOISE * rng.normal(size=(n, 2))).astype(np.float32).T
        for _ in range(n_phase_steps):
            repulsion = repel(positions.T, n_threads)
            step = np.float32(rate * exaggeration) * _attract(springs, positions)
            step += np.float32(rate / repulsion.total) * repulsion.forces.T
            step -= np.float32(rate * _GRAVITY / n) * positions
            _move(positions, velocity, gains, step, np.float32(momentum))
            done += 1
            if progress:
                progress("placing images", done, n_steps)
    return np.ascontiguousarray(positions.T)


class _Springs(NamedTuple):
    """The edges of a graph: their shares, and the signed incidence matrix, both ways."""

    shares: NDArray[np.float32]  # (n_edges,)
    differences: csr_array  # (n_edges, n): one end minus the other
    sums: csr_array  # (n, n_edges): its transpose


def _springs(affinities: csr_array) -> _Springs:
    edges = triu(affinities, k=1, format="coo")
    n_edges, n = edges.nnz, affinities.shape[0]
    total = max(affinities.data.sum(), np.finfo(np.float64).tiny)
    signs = np.tile(np.array([1, -1], dtype=np.float32), n_edges)
    ends = np.stack(edges.coords, axis=1).ravel()
    indptr = np.arange(0, 2 * n_edges + 1, 2)
    differences = csr_array((signs, ends, indptr), shape=(n_edges, n))
    shares = (edges.data / total).astype(np.float32)
    return _Springs(shares, differences, csr_array(differences.T))


def _attract(springs: _Springs, positions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the forces (2, n) that pull the ends of edges together."""
    x, y = (springs.differences @ axis for axis in positions)
    lengths = x * x
    lengths += y * y
    lengths += 1
    strengths = np.divide(springs.shares, lengths, out=lengths)
    return -np.stack([springs.sums @ (strengths * axis) for axis in (x, y)])


def _move(
    positions: NDArray[np.float32],
    velocity: NDArray[np.float32],
    gains: NDArray[np.float32],
    step: NDArray[np.float32],
    momentum: np.float32,
) -> None:
    """Move all points along their steps, in place."""
    agrees = (step * velocity).sum(axis=0) >= 0
    gains[:] = np.where(agrees, gains + _FASTER, np.maximum(gains * _SLOWER, _SLOWEST))
    velocity *= momentum
    velocity += gains * step
    np.clip(velocity, -_LONGEST_MOVE, _LONGEST_MOVE, out=velocity)
    positions += velocity
