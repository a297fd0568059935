"""Clusters as discs that are evenly filled and do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Share of the square that the discs cover, and the steps in which they move together.
_COVERED = 0.62
_SHRINKING_STEPS, _SETTLING_STEPS = 30, 15
# Pushes per step; only pairs of discs that are near at its start are compared in a step.
_PUSHES, _NEAR = 8, 1.1
# All pairs of discs push at once. Less than the whole overlap keeps them from swinging.
_SHARE_OF_OVERLAP = 0.7
_ROWS_AT_ONCE = 64
# Side of the map at the start, compared with the final square.
_SPREAD = 3
# Overlap that may remain, as a share of the smallest radius; the square grows until it is reached.
# Small discs between large ones may need more than that: after some steps all distances grow.
_OVERLAP = 0.02
_GROWTH, _PATIENCE = 1.02, 400
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
        _push_apart(apart, radii, _near_pairs(apart, radii), walls / 2)
    step = 0
    while True:
        pairs = _near_pairs(apart, radii)
        if _overlaps(apart, radii, pairs)[1].max(initial=0) <= _OVERLAP * radii.min():
            return apart
        _push_apart(apart, radii, pairs, walls / 2)
        step += 1
        walls *= _GROWTH if step > _SETTLING_STEPS else 1
        apart *= _GROWTH if step > _PATIENCE else 1


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


def _near_pairs(centers: NDArray[np.float64], radii: NDArray[Any]) -> NDArray[np.intp]:
    """Return the pairs (2, n_pairs) of discs that overlap or nearly touch."""
    pairs = []
    for first in range(0, len(radii), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        x, y = (np.subtract.outer(axis[rows], axis[first:]) for axis in centers.T)
        reach = _NEAR * np.add.outer(radii[rows], radii[first:])
        near = np.flatnonzero(np.triu(x * x + y * y < reach * reach, k=1))
        pairs.append(first + np.stack(np.divmod(near, reach.shape[1])))
    return np.concatenate(pairs, axis=1)


def _overlaps(
    centers: NDArray[np.float64], radii: NDArray[Any], pairs: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return unit vectors from the second disc of every pair to the first, and the overlaps."""
    i, j = pairs
    reach, offsets = radii[i] + radii[j], centers[i] - centers[j]
    distances = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
    same = distances < 1e-9 * reach
    if same.any():
        # Discs with the same centre move in different directions.
        offsets[same] = np.stack([np.cos(j[same]), np.sin(j[same])], axis=1)
    directions = offsets / np.where(same, 1, distances)[:, None]
    return directions, np.maximum(reach - distances, 0)


def _push_apart(
    centers: NDArray[np.float64],
    radii: NDArray[Any],
    pairs: NDArray[np.intp],
    walls: NDArray[np.float64],
) -> None:
    """Separate discs that overlap, moving the smaller one more, in place."""
    areas, limits = radii[pairs] ** 2, np.maximum(walls - radii[:, None], 0)
    # The first disc of a pair moves along the direction, the second one against it.
    shares = areas[::-1] / areas.sum(axis=0) * [[1], [-1]]
    for _ in range(_PUSHES):
        directions, overlaps = _overlaps(centers, radii, pairs)
        pushes = _SHARE_OF_OVERLAP * overlaps * shares
        for axis in range(2):
            moves = (pushes * directions[:, axis]).ravel()
            centers[:, axis] += np.bincount(pairs.ravel(), moves, len(centers))
        np.clip(centers, -limits, limits, out=centers)
