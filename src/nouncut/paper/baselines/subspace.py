"""Subspace clustering: every image as a sparse sum of other images, then spectral clustering.

SSC-OMP finds the sum by orthogonal matching pursuit (You, Robinson, Vidal, "Scalable sparse
subspace clustering by orthogonal matching pursuit", CVPR 2016). EnSC minimises

    lam ||c||_1 + (1 - lam)/2 ||c||^2 + gamma/2 ||x_i - sum_j c_j x_j||^2,   c_i = 0,

where gamma is `alpha` times the smallest one whose solution is not zero (You, Li, Robinson, Vidal,
"Oracle based active set algorithm for scalable elastic net subspace clustering", CVPR 2016). The
affinity of both is |C| + |C^T|.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import enet_path

from nouncut.compute.threads import blas_threads, count_threads, run_tasks
from nouncut.paper.baselines.spectral import cut_graph

# The authors' choices for MNIST, but for alpha: they advise 5 to 500, and the larger it is, the
# more images share in a sum (with 50, almost as many as an image has features).
_NONZERO, _RESIDUAL = 5, 1e-5
_LAM, _ALPHA = 0.9, 5.0
# The active set of EnSC: the images that it starts with, which is also the most that join in one
# round; and the most rounds.
_ACTIVE, _ROUNDS = 100, 20
# An image joins the active set if it violates the optimality condition by more than this share.
_SLACK = 1e-3
_MAX_SWEEPS = 10_000
_IMAGES_AT_ONCE = 256
# Avoids a division by zero for an image that is orthogonal to all others.
_TINY = 1e-30

Rows = NDArray[np.intp]
Coefficients = list[tuple[Rows, NDArray[np.float64]]]
"""For every image, other images and what they contribute to it."""


def ssc_omp(features: NDArray[np.float32], n_clusters: int, random_state: int) -> NDArray[np.intp]:
    """Cluster unit rows by sparse sums of at most five other images."""
    return cut_graph(_affinity(omp_coefficients(features)), n_clusters, random_state)


def ensc(features: NDArray[np.float32], n_clusters: int, random_state: int) -> NDArray[np.intp]:
    """Cluster unit rows by elastic-net sums of other images."""
    return cut_graph(_affinity(elastic_net_coefficients(features)), n_clusters, random_state)


def omp_coefficients(features: NDArray[np.float32], n_nonzero: int = _NONZERO) -> csr_array:
    """Return C, a sparse matrix whose row i expresses image i by at most `n_nonzero` others."""
    n_images = len(features)
    n_nonzero = min(n_nonzero, n_images - 1)
    blocks = np.split(np.arange(n_images), range(_IMAGES_AT_ONCE, n_images, _IMAGES_AT_ONCE))
    found = (_pursue(features, rows, n_nonzero) for rows in blocks)
    return _sparse_rows([row for block in found for row in block])


def elastic_net_coefficients(
    features: NDArray[np.float32], lam: float = _LAM, alpha: float = _ALPHA
) -> csr_array:
    """Return C, a sparse matrix whose row i is the elastic-net solution for image i."""
    solve = partial(_active_set, features, lam=lam, alpha=alpha)
    with blas_threads(1):
        return _sparse_rows(run_tasks(solve, range(len(features)), count_threads(-1)))


def _sparse_rows(found: Coefficients) -> csr_array:
    images, values = (np.concatenate(part) for part in zip(*found, strict=True))
    indptr = np.cumsum([0, *(len(own) for own, _ in found)])
    return csr_array((values, images, indptr), shape=(len(found), len(found)))


def _affinity(coefficients: csr_array) -> csr_array:
    strengths = abs(coefficients)
    graph = csr_array(strengths + strengths.T)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _pursue(features: NDArray[np.float32], rows: Rows, n_nonzero: int) -> Coefficients:
    """Add the image that fits the residual best, fit all chosen images again, and repeat."""
    found: Coefficients = [(rows[:0], np.empty(0))] * len(rows)
    position, targets = np.arange(len(rows)), features[rows].astype(np.float64)
    residuals, chosen = targets, np.empty((len(rows), 0), np.intp)
    for _ in range(n_nonzero):
        fit = np.abs(residuals.astype(np.float32) @ features.T)
        np.put_along_axis(fit, np.hstack([rows[:, None], chosen]), -1, axis=1)
        chosen = np.hstack([chosen, fit.argmax(axis=1)[:, None]])
        parts = features[chosen].astype(np.float64)
        values = _least_squares(parts, targets)
        for i, images, own in zip(position, chosen, values, strict=True):
            found[i] = images, own
        residuals = targets - np.einsum("ij,ijk->ik", values, parts)
        left = np.linalg.norm(residuals, axis=1) > _RESIDUAL
        rows, position, targets, residuals, chosen = (
            part[left] for part in (rows, position, targets, residuals, chosen)
        )
    return found


def _least_squares(parts: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit the sums of (n, s, d) parts to (n, d) targets."""
    overlaps = parts @ parts.transpose(0, 2, 1)
    inverses = np.linalg.pinv(overlaps, hermitian=True)
    return np.asarray(np.einsum("ijk,ikl,il->ij", inverses, parts, targets, optimize=True))


def _active_set(
    features: NDArray[np.float32], i: int, *, lam: float, alpha: float
) -> tuple[Rows, NDArray[np.float64]]:
    """Solve among few images, let those join that violate the optimality condition, and repeat."""
    image = features[i].astype(np.float64)
    fit = np.abs(features @ features[i])
    fit[i] = -1
    gamma = alpha * lam / max(float(fit.max()), _TINY)
    active = np.argsort(-fit, kind="stable")[: min(_ACTIVE, len(features) - 1)]
    for _ in range(_ROUNDS):
        parts = features[active].astype(np.float64)
        values = _elastic_net(parts, image, lam, gamma)
        support = values != 0
        found = active[support], values[support]
        pull = gamma * np.abs(features @ (image - values @ parts).astype(np.float32))
        pull[i] = pull[active] = 0
        joining = np.argsort(-pull, kind="stable")[:_ACTIVE]
        joining = joining[pull[joining] > lam * (1 + _SLACK)]
        if not len(joining):
            break
        active = np.concatenate([found[0], joining])
    return found


def _elastic_net(
    parts: NDArray[np.float64], target: NDArray[np.float64], lam: float, gamma: float
) -> NDArray[np.float64]:
    """Minimise EnSC's objective over the coefficients of (s, d) parts."""
    # scikit-learn divides the squares by twice the number of rows of its (d, s) matrix.
    _, paths, _ = enet_path(
        parts.T,
        target,
        l1_ratio=lam,
        alphas=[1 / (gamma * len(target))],
        precompute=parts @ parts.T,
        Xy=parts @ target,
        check_input=False,
        tol=1e-5,
        max_iter=_MAX_SWEEPS,
    )
    return np.asarray(paths[:, 0])
