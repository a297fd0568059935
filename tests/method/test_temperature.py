from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.compute.rows import unit_rows
from nouncut.method.temperature import choose_tau, relative_perplexity
from nouncut.paper.synthetic import make_clip_like


@pytest.mark.parametrize("separation", [0.2, 0.3, 0.45])
@pytest.mark.parametrize("n_clusters", [5, 20, 50])
def test_auto_lands_near_the_published_value_on_clips_cosine_ranges(separation, n_clusters):
    data = make_clip_like(600, n_clusters, separation=separation, random_state=0)
    assert 0.03 < choose_tau(data.features, data.noun_features) < 0.056


@given(spread=st.floats(0.005, 0.3), n_nouns=st.sampled_from([50, 400]))
@settings(max_examples=20, deadline=None)
def test_chosen_tau_meets_the_target(spread, n_nouns):
    rng = np.random.default_rng(0)
    features = unit_rows(rng.normal(size=(100, 32)))
    nouns = [spread * np.sqrt(32) * unit_rows(rng.normal(size=(n_nouns, 32))) for _ in range(2)]
    tau = choose_tau(features, nouns)
    reached = np.mean([relative_perplexity(features @ prompt.T, tau) for prompt in nouns])
    assert reached == pytest.approx(0.8, abs=1e-3)


def test_perplexity_rises_with_tau():
    cosines = np.random.default_rng(0).normal(0.25, 0.03, size=(20, 100))
    values = [relative_perplexity(cosines, tau) for tau in (0.001, 0.01, 0.04, 0.2, 10.0)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(0.01, abs=0.01)
    assert values[-1] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("nouns", [np.eye(3)[:1], np.ones((4, 3))])
def test_nouns_that_tell_nothing_apart_keep_the_published_value(nouns):
    assert choose_tau(np.eye(3), [nouns]) == 0.04
