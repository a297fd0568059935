"""The neural tangent kernel: visual proximity times semantic overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.softmax import softmax_rows
from nouncut.compute.threads import blas_threads, run_tasks

_ROWS_AT_ONCE = 128
# A little more than 1: opposite images are far apart, but not infinitely.
_SHIFT = 1.1


def looks_only(features: NDArray[Any]) -> NDArray[Any]:
    """Return features whose inner products grow with the cosine and are never negative.

    They compare images that the kernel finds nothing in common between: centred features of few
    images mostly have negative cosines, and nouns need not overlap.
    """
    shift = np.full((len(features), 1), np.sqrt(_SHIFT), features.dtype)
    return np.asarray(np.hstack([features, shift]) / np.sqrt(1 + _SHIFT), features.dtype)


def noun_probabilities(
    features: NDArray[Any],
    noun_features: Sequence[NDArray[Any]],
    tau: float,
    n_threads: int = 1,
) -> list[NDArray[Any]]:
    """Return how strongly every image points at every noun, for every prompt."""
    results = []
    for nouns in noun_features:
        result = np.empty((len(features), len(nouns)), np.result_type(features, nouns))

        def keep(rows: slice, block: NDArray[Any], result: NDArray[Any] = result) -> None:
            result[rows] = block

        softmax_blocks(features, nouns, tau, keep, n_threads)
        results.append(result)
    return results


def softmax_blocks(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    use: Callable[[slice, NDArray[Any]], None],
    n_threads: int = 1,
) -> None:
    """Make noun probabilities a few images at a time, for as many nouns as there may be."""
    columns = np.ascontiguousarray(nouns.T)

    def softmax(first: int) -> None:
        rows = slice(first, first + _ROWS_AT_ONCE)
        logits = features[rows] @ columns
        softmax_rows(logits, tau)
        use(rows, logits)

    with blas_threads(1):
        run_tasks(softmax, range(0, len(features), _ROWS_AT_ONCE), n_threads)


def ntk_kernel(
    features: NDArray[Any],
    probabilities: NDArray[Any],
    other_features: NDArray[Any] | None = None,
    other_probabilities: NDArray[Any] | None = None,
    *,
    tau: float,
) -> NDArray[Any]:
    """Return the dense kernel between two (small) sets of images."""
    if other_features is None or other_probabilities is None:
        other_features, other_probabilities = features, probabilities
    visual = features @ other_features.T
    semantic = probabilities @ other_probabilities.T
    return np.asarray(visual * semantic / tau**2)
