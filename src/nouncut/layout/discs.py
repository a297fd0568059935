"""Clusters as discs: each round and evenly filled, none over another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# How much of the square the discs are to cover, and in how many steps they move together.
_COVERED = 0.62
_SHRINKING_STEPS, _SETTLING_STEPS = 140, 60
# How much larger than the square the map is at first.
_SPREAD = 3
# The overlap that may remain, as a share of the smallest radius, and how the square grows else.
_OVERLAP = 0.02
_GROWTH = 1.02
# How much longer than wide a cluster may be; thinner ones than this are lines and stay so.
_LONGEST, _THINNEST = 1.5, 1e-3
# The part of a cluster that counts for its radius, and for its shape; the rest is brought in from
# afar.
_CORE, _HEART = 0.9, 0.8


def rounded_clusters(
    positions: NDArray[Any], labels: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle of every cluster, and its images as a disc of radius one.

    Long clusters become rounder and dense ones looser, halfway: what is near stays near.
    """
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    centers = np.array([np.median(positions[rows], axis=0) for rows in members], dtype=np.float64)
    offsets = positions - centers[labels]
    for rows in members:
        offsets[rows] = _even_disc(_rounder(offsets[rows]))
    return centers, offsets


def pack_discs(centers: NDArray[Any], radii: NDArray[Any]) -> NDArray[np.float64]:
    """Move discs together in a square, none over another, keeping their arrangement."""
    side = max(np.sqrt(np.pi * (radii**2).sum() / _COVERED), 2 * radii.max())
    centers = _squared(centers)
    lowest, highest = centers.min(axis=0), centers.max(axis=0)
    span = highest - lowest
    scale = _SPREAD * side / max(span.max(), np.finfo(np.float32).tiny)
    # First so far apart that few of them touch.
    apart = np.asarray(scale * (centers - (lowest + highest) / 2))
    walls = np.maximum(scale * span, side)
    shrink = (side / walls) ** (1 / _SHRINKING_STEPS)
    for _ in range(_SHRINKING_STEPS):
        apart *= shrink
        walls *= shrink
        _push_apart(apart, radii, walls / 2)
    for _ in range(_SETTLING_STEPS):
        overlap = _push_apart(apart, radii, walls / 2)
    while overlap > _OVERLAP * radii.min():
        walls *= _GROWTH
        overlap = _push_apart(apart, radii, walls / 2)
    return apart


def _squared(points: NDArray[Any]) -> NDArray[np.float64]:
    """Stretch what lies in a round heap to the corners of a square."""
    points = points - points.mean(axis=0)
    reach = np.maximum(np.abs(points).max(axis=1), np.finfo(np.float32).tiny)
    return np.asarray(points * (np.linalg.norm(points, axis=1) / reach)[:, None])


def _rounder(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stretch points that lie longer than wide: to the square root of that, or a limit."""
    distances = np.linalg.norm(points, axis=1)
    # A few images far off must not decide.
    heart = points[distances <= np.quantile(distances, _HEART)]
    variances, axes = np.linalg.eigh(heart.T @ heart)
    short, long = np.sqrt(np.maximum(variances, 0))
    if short <= _THINNEST * long:
        return points
    elongation = long / short
    stretch = elongation / min(np.sqrt(elongation), _LONGEST)
    return np.asarray(points @ (axes * [stretch, 1]) @ axes.T)


def _even_disc(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring points into the unit disc, halfway to the same density everywhere."""
    distances = np.linalg.norm(points, axis=1)
    if not distances.any():
        return points
    even = np.empty_like(distances)
    ranks = np.arange(len(points)) + 0.5
    even[np.argsort(distances, kind="stable")] = np.sqrt(ranks / len(points))
    core = max(np.quantile(distances, _CORE), distances.mean())
    radii = (np.minimum(distances / core, 1) + even) / 2
    scales = radii / np.maximum(distances, np.finfo(np.float64).tiny)
    return np.asarray(points * scales[:, None])


@njit(nogil=True, cache=True)
def _push_apart(centers: Any, radii: Any, walls: Any) -> float:
    """Part discs that overlap, the smaller one moving more; return the largest overlap found."""
    largest = 0.0
    for i in range(len(centers)):
        for j in range(i):
            x, y = centers[i, 0] - centers[j, 0], centers[i, 1] - centers[j, 1]
            reach = radii[i] + radii[j]
            distance = np.sqrt(x * x + y * y)
            if distance >= reach:
                continue
            largest = max(largest, reach - distance)
            if distance < 1e-9 * reach:
                # At the same place: each goes its own way.
                distance = reach / 2
                x, y = distance * np.cos(i), distance * np.sin(i)
            push = (reach - distance) / distance
            share = radii[j] ** 2 / (radii[i] ** 2 + radii[j] ** 2)
            centers[i, 0] += share * push * x
            centers[i, 1] += share * push * y
            centers[j, 0] -= (1 - share) * push * x
            centers[j, 1] -= (1 - share) * push * y
        for axis in range(2):
            room = max(walls[axis] - radii[i], 0.0)
            centers[i, axis] = min(max(centers[i, axis], -room), room)
    return largest
