"""The neural tangent kernel (Eq. 7): visual similarity times semantic overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.softmax import softmax_rows
from nouncut.compute.threads import blas_threads, run_tasks

_ROWS_AT_ONCE = 128
# Slightly above 1, so that even opposite images have a positive similarity.
_SHIFT = 1.1


class Kernel(NamedTuple):
    """Unit image features, unit noun features (one array per prompt), and how they are coupled."""

    features: NDArray[Any]
    semantic: NDArray[Any]  # In the space of the nouns; may be `features` itself.
    prompts: Sequence[NDArray[Any]] = ()
    tau: float = 1.0
    weight: float = 1.0  # Of the semantic overlap; 1 is the paper's kernel, 0 is looks alone.

    @property
    def rows(self) -> tuple[NDArray[Any], ...]:
        """The features that distinguish images: visual ones, and semantic ones if they differ."""
        one_space = self.semantic is self.features
        return (self.features,) if one_space else (self.features, self.semantic)

    def take(self, images: NDArray[np.intp]) -> Self:
        """Return the kernel of some images, in this order."""
        features = self.features[images]
        semantic = features if self.semantic is self.features else self.semantic[images]
        return self._replace(features=features, semantic=semantic)


def shifted_features(features: NDArray[Any]) -> NDArray[Any]:
    """Return features whose inner products rise with the cosine and are never negative.

    They compare images by looks where the kernel finds no similarity: centred features of few
    images have mostly negative cosines, and nouns need not overlap.
    """
    shift = np.full((len(features), 1), np.sqrt(_SHIFT), features.dtype)
    return np.asarray(np.hstack([features, shift]) / np.sqrt(1 + _SHIFT), features.dtype)


def noun_probabilities(
    features: NDArray[Any],
    noun_features: Sequence[NDArray[Any]],
    tau: float,
    n_threads: int = 1,
    weight: float = 1.0,
) -> list[NDArray[Any]]:
    """Return the softmax over nouns of every image, (n_images, n_nouns) for every prompt."""
    results = []
    for nouns in noun_features:
        result = np.empty((len(features), len(nouns)), np.result_type(features, nouns))
        softmax_blocks(features, nouns, tau, result.__setitem__, n_threads, weight)
        results.append(result)
    return results


def softmax_blocks(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    use: Callable[[slice, NDArray[Any]], None],
    n_threads: int = 1,
    weight: float = 1.0,
) -> None:
    """Call `use(rows, probabilities)` for a few images at a time, from several threads.

    With a weight w below 1, sqrt(w) of the probabilities is the softmax and the rest is uniform, so
    that overlaps of n nouns become ``w (s_i . s_j) + (1 - w) / n``.
    """
    columns = np.ascontiguousarray(nouns.T)

    def softmax(first: int) -> None:
        rows = slice(first, first + _ROWS_AT_ONCE)
        logits = features[rows] @ columns
        softmax_rows(logits, tau)
        if weight < 1:
            logits *= logits.dtype.type(np.sqrt(weight))
            logits += logits.dtype.type((1 - np.sqrt(weight)) / len(nouns))
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
    """Return the dense kernel matrix between two small sets of images, or within one."""
    if other_features is None or other_probabilities is None:
        other_features, other_probabilities = features, probabilities
    visual = features @ other_features.T
    semantic = probabilities @ other_probabilities.T
    return np.asarray(visual * semantic / tau**2)
