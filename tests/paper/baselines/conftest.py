from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nouncut.paper.baselines.problem import Problem
from nouncut.paper.synthetic import ClipLikeData, make_clip_like


@pytest.fixture(scope="package")
def data() -> ClipLikeData:
    return make_clip_like(200, 5, n_nouns=120, n_prompts=7, dim=256, separation=0.7, random_state=0)


@pytest.fixture(scope="package")
def problem(data) -> Problem:
    """Return the made data as a problem, classes named by the mean of their nouns."""
    nouns = data.noun_features[0]
    of_a_class = np.flatnonzero(np.arange(len(nouns)) % 3 != 2)
    classes = np.arange(len(of_a_class)) % 5
    names = np.stack([nouns[of_a_class[classes == label]].mean(axis=0) for label in range(5)])
    return Problem(
        visual=data.features,
        semantic=data.features,
        n_clusters=5,
        nouns=data.noun_features,
        candidates=nouns,
        class_features=names,
        tau=0.04,
        gradnorm_nouns=[prompt[of_a_class] for prompt in data.noun_features[:2]],
    )


@pytest.fixture(scope="package")
def two_spaces(problem) -> Problem:
    """Return the problem with images in a visual space of their own, rows of any length."""
    rng = np.random.default_rng(0)
    turned = problem.visual @ rng.normal(size=(256, 100)) * rng.uniform(1, 9, size=(200, 1))
    return replace(problem, visual=turned)
