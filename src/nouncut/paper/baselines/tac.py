"""TAC without training: every image beside its text counterpart.

The counterpart is a mean of noun features, weighted by the softmax of their cosines with the image
(Li et al., "Image Clustering with External Guidance", ICML 2024).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.method.kernel import noun_probabilities
from nouncut.paper.baselines.problem import Problem, unit_features
from nouncut.words.filters import mean_prompt_features

# The published temperature of the retrieval.
TAC_TAU = 0.005


def tac_features(problem: Problem, nouns: list[NDArray[Any]]) -> NDArray[np.float32]:
    """Return images beside their text counterparts, rows of length one."""
    counterparts = text_counterparts(problem.unit_semantic, mean_prompt_features(nouns))
    return unit_features(np.hstack([problem.unit_visual, counterparts]))


def text_counterparts(
    semantic: NDArray[np.float32], nouns: NDArray[np.float32], tau: float = TAC_TAU
) -> NDArray[np.float32]:
    """Return the weighted mean of (n_nouns, d) nouns for every image, rows of length one."""
    weights = noun_probabilities(semantic, [nouns], tau)[0]
    return np.asarray(unit_rows(weights @ nouns))
