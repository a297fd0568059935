"""Half-whitening: what it does to variances, few images, constant features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from nouncut.method.whitening import half_whitening

seeds = st.integers(0, 2**32 - 1)


def features(seed, n_images, width):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_images, width)) * rng.uniform(0.1, 9, width) + 3


@settings(deadline=None)
@given(seeds, st.integers(3, 40), st.integers(2, 20))
def test_deviations_become_their_roots_and_components_stay_uncorrelated(seed, n_images, width):
    X = features(seed, n_images, width)
    seen = half_whitening(X)(X).astype(np.float64)
    # The singular values of X by another way.
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    expected = np.sqrt(singular[: seen.shape[1]] / np.sqrt(n_images))
    assert_allclose(seen.std(axis=0), expected, rtol=2e-3)
    covariance = seen.T @ seen / n_images
    assert_allclose(covariance, np.diag(expected**2), atol=2e-3 * expected[0] ** 2)


@settings(deadline=None)
@given(seeds)
def test_both_ways_to_the_components_agree(seed):
    """Few images have a small Gram matrix, many a small scatter matrix."""
    X = features(seed, 12, 12)
    few, many = half_whitening(X)(X), half_whitening(np.vstack([X, X]))(X)
    assert_allclose(few @ few.T, many @ many.T, atol=2e-3 * np.abs(few @ few.T).max())


def test_no_more_components_than_asked_for_or_needed():
    X = features(0, 50, 20)
    assert half_whitening(X, 7).basis.shape == (20, 7)
    assert half_whitening(X[:4]).basis.shape == (20, 3)


@pytest.mark.parametrize("n_images", [1, 2, 30])
def test_equal_images_stay_equal(n_images):
    X = np.tile(features(0, 1, 20), (n_images, 1)).astype(np.float32)
    seen = half_whitening(X)(X)
    assert np.isfinite(seen).all()
    assert_allclose(seen, seen[:1].repeat(n_images, axis=0), atol=1e-6)


def test_a_row_is_projected_alike_among_many_rows():
    X = features(0, 5000, 30).astype(np.float32)
    view = half_whitening(X)
    assert_allclose(view(X[4500:4501])[0], view(X)[4500], atol=1e-5)
