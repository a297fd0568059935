"""Regularized Affinity Diffusion as published: dense, and the oracle for the spectral solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.memory import available_memory
from nouncut.compute.sparse import sparse_product
from nouncut.method.diffusion import PUBLISHED, DiffusionOptions, PromptWeights, simplex_weights


def exact_diffusion_bytes(n_images: int, n_prompts: int) -> int:
    """Return the memory that `exact_diffusion` needs."""
    return 8 * n_images**2 * (n_prompts + 3)


def exact_diffusion(
    graphs: Sequence[csr_array], options: DiffusionOptions = PUBLISHED, n_threads: int = 1
) -> tuple[NDArray[np.float64], PromptWeights]:
    """Return the diffused affinity (n_images, n_images) of normalised graphs, and their weights.

    Alternates between the affinity (Eq. 13, to its fixed point) and the prompt weights (Eq. 14,
    in closed form), starting from the identity and even weights.
    """
    n_images, n_prompts = graphs[0].shape[0], len(graphs)
    _require_memory(n_images, n_prompts)
    weights = np.full(n_prompts, 1 / n_prompts)
    affinity = np.eye(n_images)
    products = [_two_sided(S, affinity, n_threads) for S in graphs]
    objective: list[float] = []
    weight_steps: list[NDArray[np.float64]] = []
    max_inner_iter = 1 if options.single_steps else options.max_inner_iter
    for _ in range(options.max_iter):
        n_steps, change = 0, np.inf
        while n_steps < max_inner_iter and change >= options.tol:
            successor = _affinity_step(products, weights, options.mu)
            change = float(np.linalg.norm(successor - affinity) / np.linalg.norm(affinity))
            affinity = successor
            products = [_two_sided(S, affinity, n_threads) for S in graphs]
            n_steps += 1
        square = float(np.vdot(affinity, affinity))
        losses = np.array([square - float(np.vdot(affinity, P)) for P in products])
        weights = simplex_weights(losses, options.lam)
        weight_steps.append(weights)
        # ||A - I||^2 = ||A||^2 - 2 tr A + n.
        distance = square - 2 * float(np.trace(affinity)) + n_images
        penalty = options.lam / 2 * weights @ weights
        objective.append(float(weights @ losses + options.mu * distance + penalty))
        if n_steps == 1 and change < options.tol and not options.single_steps:
            break
    return affinity, PromptWeights(weights, losses, np.array(objective), np.array(weight_steps))


def _two_sided(S: csr_array, affinity: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """Return S A S for symmetric S and A."""
    return sparse_product(S, sparse_product(S, affinity, n_threads).T, n_threads)


def _affinity_step(
    products: Sequence[NDArray[Any]], weights: NDArray[Any], mu: float
) -> NDArray[np.float64]:
    """Return the right-hand side of Eq. 13, with E = I."""
    successor: NDArray[np.float64] = np.zeros_like(products[0])
    for weight, product in zip(weights, products, strict=True):
        if weight:
            successor += weight / (mu + 1) * product
    successor.flat[:: len(successor) + 1] += mu / (mu + 1)
    return successor


def _require_memory(n_images: int, n_prompts: int) -> None:
    needed, free = exact_diffusion_bytes(n_images, n_prompts), available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"Exact diffusion of {n_images:,} images and {n_prompts} prompts needs "
            f"{needed / 1e9:,.1f} GB of memory, but {free / 1e9:,.1f} GB are free. "
            'Use `solver="spectral"`, which never forms an n x n matrix.'
        )
