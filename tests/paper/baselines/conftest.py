from __future__ import annotations

import numpy as np
import pytest

from nouncut.paper.baselines.method import Problem
from nouncut.paper.synthetic import ClipLikeData, make_clip_like


@pytest.fixture(scope="package")
def data() -> ClipLikeData:
    return make_clip_like(200, 5, n_nouns=120, n_prompts=7, dim=512, separation=0.6, random_state=0)


@pytest.fixture(scope="package")
def problem(data) -> Problem:
    """Return the made data as a problem, classes named by the mean of their nouns."""
    nouns = data.noun_features[0]
    of_a_class = np.flatnonzero(np.arange(len(nouns)) % 3 != 2)
    classes = np.arange(len(of_a_class)) % 5
    names = np.stack([nouns[of_a_class[classes == label]].mean(axis=0) for label in range(5)])
    return Problem(data.features, data.features, 5, data.noun_features, nouns, names, 0.04)


@pytest.fixture(scope="package")
def two_spaces(data) -> tuple[np.ndarray, np.ndarray]:
    """Return the images in a visual space of their own, rows of any length, and in the nouns'."""
    rng = np.random.default_rng(0)
    turned = data.features @ rng.normal(size=(512, 200)) * rng.uniform(1, 9, size=(200, 1))
    return turned, data.features
