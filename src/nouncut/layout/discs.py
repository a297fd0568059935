"""Clusters as discs that are evenly filled and do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Share of the square that the discs cover, and the steps in which they move together.
_COVERED = 0.62
_SHRINKING_STEPS, _SETTLING_STEPS = 140, 60
# Side of the map at the start, compared with the final square.
_SPREAD = 3
# Overlap that may remain, as a share of the smallest radius; the square grows until it is reached.
_OVERLAP = 0.02
_GROWTH = 1.02
# Largest ratio of length to width after rounding; thinner clusters than the second are lines and
# stay lines.
_LONGEST, _THINNEST = 1.5, 1e-3
# Share of the images, nearest to the centre first, that decide on a cluster's radius and shape.
_RADIUS_SHARE, _SHAPE_SHARE = 0.9, 0.8


def rounded_clusters(
    positions: NDArray[Any], labels: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (k, 2) centres of the clusters, and (n, 2) offsets of the images in a unit disc.

    Long clusters become rounder and dense parts sparser, but only halfway, so that neighbours stay
    neighbours.
    """
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    centers = np.array([np.median(positions[rows], axis=0) for rows in members], dtype=np.float64)
    offsets = positions - centers[labels]
    for rows in members:
        offsets[rows] = _even_disc(_rounder(offsets[rows]))
    return centers, offsets


def pack_discs(centers: NDArray[Any], radii: NDArray[Any]) -> NDArray[np.float64]:
    """Pack discs into a square without overlap and keep their arrangement."""
    side = max(np.sqrt(np.pi * (radii**2).sum() / _COVERED), 2 * radii.max())
    centers = _stretched_to_square(centers)
    lowest, highest = centers.min(axis=0), centers.max(axis=0)
    span = highest - lowest
    scale = _SPREAD * side / max(span.max(), np.finfo(np.float32).tiny)
    # At the start only few discs touch.
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


def _stretched_to_square(points: NDArray[Any]) -> NDArray[np.float64]:
    """Stretch a round cloud of points into the corners of a square."""
    points = points - points.mean(axis=0)
    reach = np.maximum(np.abs(points).max(axis=1), np.finfo(np.float32).tiny)
    return np.asarray(points * (np.linalg.norm(points, axis=1) / reach)[:, None])


def _rounder(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reduce the ratio of length to width to its square root, or to a limit."""
    distances = np.linalg.norm(points, axis=1)
    # A few images far from the centre must not decide on the shape.
    inner = points[distances <= np.quantile(distances, _SHAPE_SHARE)]
    variances, axes = np.linalg.eigh(inner.T @ inner)
    short, long = np.sqrt(np.maximum(variances, 0))
    if short <= _THINNEST * long:
        return points
    elongation = long / short
    stretch = elongation / min(np.sqrt(elongation), _LONGEST)
    return np.asarray(points @ (axes * [stretch, 1]) @ axes.T)


def _even_disc(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move points into the unit disc, halfway to the same density everywhere."""
    distances = np.linalg.norm(points, axis=1)
    if not distances.any():
        return points
    even = np.empty_like(distances)
    ranks = np.arange(len(points)) + 0.5
    even[np.argsort(distances, kind="stable")] = np.sqrt(ranks / len(points))
    radius = max(np.quantile(distances, _RADIUS_SHARE), distances.mean())
    radii = (np.minimum(distances / radius, 1) + even) / 2
    scales = radii / np.maximum(distances, np.finfo(np.float64).tiny)
    return np.asarray(points * scales[:, None])


@njit(nogil=True, cache=True)
def _push_apart(centers: Any, radii: Any, walls: Any) -> float:
    """Separate discs that overlap, moving the smaller one more; return the largest overlap."""
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
                # Discs with the same centre move in different directions.
                distance = reach / 2
                x, y = distance * np.cos(i), distance * np.sin(i)
            push = (reach - distance) / distance
            share = radii[j] ** 2 / (radii[i] ** 2 + radii[j] ** 2)
            centers[i, 0] += share * push * x
            centers[i, 1] += share * push * y
            centers[j, 0] -= (1 - share) * push * x
            centers[j, 1] -= (1 - share) * push * y
        for axis in range(2):
            limit = max(walls[axis] - radii[i], 0.0)
            centers[i, axis] = min(max(centers[i, axis], -limit), limit)
    return largest
