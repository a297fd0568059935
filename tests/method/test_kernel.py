from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from nouncut.compute.rows import unit_rows
from nouncut.method.kernel import noun_probabilities, ntk_kernel, shifted_features


def gradient(features: np.ndarray, nouns: np.ndarray, tau: float) -> np.ndarray:
    """Differentiate Eq. 6 numerically with respect to every entry of W (central differences)."""
    step = 1e-5
    result = np.empty((len(features), nouns.size))
    for entry in range(nouns.size):
        shift = np.zeros(nouns.size)
        shift[entry] = step
        up, down = nouns + shift.reshape(nouns.shape), nouns - shift.reshape(nouns.shape)
        result[:, entry] = (
            logsumexp(features @ up.T / tau, axis=1) - logsumexp(features @ down.T / tau, axis=1)
        ) / (2 * step)
    return result


@pytest.mark.parametrize("tau", [0.04, 0.2, 1.0])
def test_kernel_is_the_inner_product_of_the_gradients(tau):
    rng = np.random.default_rng(0)
    features, nouns = unit_rows(rng.normal(size=(6, 5))), unit_rows(rng.normal(size=(4, 5)))
    slopes = gradient(features, nouns, tau)
    kernel = ntk_kernel(features, noun_probabilities(features, [nouns], tau)[0], tau=tau)
    np.testing.assert_allclose(kernel, slopes @ slopes.T, rtol=1e-5, atol=1e-5 / tau**2)


def test_kernel_between_two_sets_is_a_block_of_the_whole():
    rng = np.random.default_rng(1)
    features = unit_rows(rng.normal(size=(9, 4)))
    probabilities = noun_probabilities(features, [unit_rows(rng.normal(size=(3, 4)))], 0.1)[0]
    whole = ntk_kernel(features, probabilities, tau=0.1)
    block = ntk_kernel(features[:4], probabilities[:4], features[4:], probabilities[4:], tau=0.1)
    np.testing.assert_allclose(block, whole[:4, 4:], rtol=1e-12)


@given(
    arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3)),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=50, deadline=None)
def test_probabilities_are_distributions_at_any_temperature(nouns, tau):
    features = unit_rows(np.arange(1.0, 7.0).reshape(2, 3))
    probabilities = noun_probabilities(features, [nouns], tau)[0]
    assert np.all(probabilities >= 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_probabilities_equal_the_plain_softmax(n_threads):
    rng = np.random.default_rng(2)
    features = unit_rows(rng.normal(size=(600, 8))).astype(np.float32)
    prompts = [unit_rows(rng.normal(size=(5, 8))).astype(np.float32) for _ in range(2)]
    found = noun_probabilities(features, prompts, 0.04, n_threads)
    for nouns, probabilities in zip(prompts, found, strict=True):
        powers = np.exp(features.astype(np.float64) @ nouns.T / 0.04)
        expected = powers / powers.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(probabilities, expected, rtol=2e-4, atol=1e-7)
        assert probabilities.dtype == np.float32


def test_shifted_features_rank_images_by_cosine():
    rng = np.random.default_rng(3)
    features = unit_rows(rng.normal(size=(20, 4)))
    features[1] = -features[0]
    shifted = shifted_features(features)
    products = shifted @ shifted.T
    np.testing.assert_allclose(products, (features @ features.T + 1.1) / 2.1)
    assert products.min() > 0
