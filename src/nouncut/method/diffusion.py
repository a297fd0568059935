"""Regularized Affinity Diffusion (RAD, Eq. 9): what the exact and the spectral solver share."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class DiffusionOptions(NamedTuple):
    """Parameters of the diffusion; the defaults are the published values."""

    mu: float = 0.1
    lam: float = 10.0
    max_iter: int = 5
    max_inner_iter: int = 8
    tol: float = 1e-4
    # One affinity step per outer step and no early stop: Algorithm 1, iteration by iteration.
    single_steps: bool = False


PUBLISHED = DiffusionOptions()


class PromptWeights(NamedTuple):
    """Weights of the prompts, and how they were found."""

    weights: NDArray[np.float64]  # (n_prompts,)
    losses: NDArray[np.float64]  # (n_prompts,)
    objective: NDArray[np.float64]  # (n_iter,), Eq. 9 after every outer step
    steps: NDArray[np.float64]  # (n_iter, n_prompts), the weights after every outer step

    @classmethod
    def of_one(cls) -> Self:
        """Return the weight of a single prompt, without diffusion."""
        return cls(np.ones(1), np.empty(0), np.empty(0), np.empty((0, 1)))


def simplex_weights(losses: ArrayLike, lam: float) -> NDArray[np.float64]:
    """Return the weights that minimise ``weights . losses + lam/2 ||weights||^2`` (Eq. 14).

    The minimiser over non-negative weights that sum to one is the projection of ``-losses / lam``
    on the simplex, in closed form as in the paper's Appendix G.
    """
    # The projection ignores a common shift; subtracting the smallest loss keeps digits.
    point = np.asarray(losses, dtype=np.float64)
    point = (point.min() - point) / lam
    descending = np.sort(point)[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, len(point) + 1)
    positive = np.flatnonzero(descending + shifts > 0)[-1]
    weights: NDArray[np.float64] = np.maximum(point + shifts[positive], 0)
    return np.asarray(weights / weights.sum())


def diffused(x: NDArray[Any], mu: float, n_steps: int | None = None) -> NDArray[np.float64]:
    """Return the diffused eigenvalues of a single graph.

    They are ``f(x) = mu / (1 + mu - x^2)`` at the fixed point of Eq. 13. Steps from the identity
    approach it by the factor ``x^2 / (1 + mu)`` each.
    """
    # Rounding must not carry an eigenvalue of one across the pole.
    squares = np.minimum(np.square(x), 1)
    fixed = mu / (1 + mu - squares)
    if n_steps is None:
        return np.asarray(fixed)
    return np.asarray(fixed + (squares / (1 + mu)) ** n_steps * (1 - fixed))
