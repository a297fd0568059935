from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.kmeans import spherical_kmeans
from nouncut.paper.baselines.subspace import (
    elastic_net_coefficients,
    ensc,
    omp_coefficients,
    ssc_omp,
)
from nouncut.paper.scores import clustering_scores


def random_unit(n: int, d: int, seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


def slow_omp(features: np.ndarray, i: int, n_nonzero: int) -> np.ndarray:
    """Orthogonal matching pursuit of one image by the others, in float64."""
    features = features.astype(np.float64)
    residual, chosen, values = features[i], [], np.zeros(len(features))
    while len(chosen) < n_nonzero and np.linalg.norm(residual) > 1e-5:
        fit = np.abs(features @ residual)
        fit[[i, *chosen]] = -1
        chosen.append(int(fit.argmax()))
        found = np.linalg.lstsq(features[chosen].T, features[i], rcond=None)[0]
        residual = features[i] - found @ features[chosen]
        values[:] = 0
        values[chosen] = found
    return values


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_matching_pursuit_agrees_with_the_slow_one(n, d, n_nonzero, seed):
    features = random_unit(n, d, seed)
    found = omp_coefficients(features, n_nonzero).toarray()
    for i in range(n):
        slow = slow_omp(features, i, min(n_nonzero, n - 1))
        # Where two images fit equally well, both sums are right.
        residuals = [np.linalg.norm(features[i] - own @ features) for own in (found[i], slow)]
        assert residuals[0] == pytest.approx(residuals[1], abs=1e-4)
        assert found[i, i] == 0
        assert np.count_nonzero(found[i]) <= n_nonzero


def test_matching_pursuit_chooses_the_same_images_in_several_blocks():
    features = random_unit(600, 40, 0)
    found = omp_coefficients(features).toarray()
    for i in range(0, 600, 37):
        np.testing.assert_allclose(found[i], slow_omp(features, i, 5), atol=1e-5)


def objective(c: np.ndarray, features: np.ndarray, i: int, lam: float, alpha: float) -> float:
    """The published objective of EnSC."""
    others = np.delete(features @ features[i], i)
    gamma = alpha * lam / np.abs(others).max()
    residual = features[i] - c @ features
    penalty = lam * np.abs(c).sum() + (1 - lam) / 2 * np.sum(c**2)
    return float(penalty + gamma / 2 * np.sum(residual**2))


@pytest.mark.parametrize(("lam", "alpha"), [(0.9, 5.0), (0.5, 20.0), (1.0, 3.0)])
def test_the_active_set_finds_the_minimum_over_all_images(lam, alpha):
    # 300 images: most are not in the first active set of 100.
    features = random_unit(300, 12, 3)
    found = elastic_net_coefficients(features, lam, alpha).toarray()
    wide = features.astype(np.float64)
    for i in range(0, 300, 29):
        others = np.delete(np.arange(300), i)
        gamma = alpha * lam / np.abs(wide[others] @ wide[i]).max()
        slow = np.zeros(300)
        model = ElasticNet(
            1 / (gamma * 12), l1_ratio=lam, fit_intercept=False, tol=1e-8, max_iter=100_000
        )
        slow[others] = model.fit(wide[others].T, wide[i]).coef_
        best = objective(slow, wide, i, lam, alpha)
        assert found[i, i] == 0
        assert objective(found[i], wide, i, lam, alpha) == pytest.approx(best, rel=2e-3)


def test_alpha_counts_from_the_smallest_gamma_with_a_solution():
    features = random_unit(40, 8, 1)
    assert elastic_net_coefficients(features, alpha=0.99).nnz == 0
    assert all(np.diff(elastic_net_coefficients(features, alpha=1.5).indptr) > 0)


@pytest.mark.parametrize("cluster", [ssc_omp, ensc])
def test_subspaces_are_found_that_k_means_cannot_see(cluster):
    rng = np.random.default_rng(0)
    planes = [rng.normal(size=(60, 4)) @ rng.normal(size=(4, 30)) for _ in range(3)]
    features = unit_rows(np.concatenate(planes)).astype(np.float32)
    classes = np.repeat(range(3), 60)
    assert clustering_scores(classes, cluster(features, 3, 0)).acc > 0.95
    assert clustering_scores(classes, spherical_kmeans(features, 3, 0).labels).acc < 0.7


@pytest.mark.parametrize("cluster", [ssc_omp, ensc])
def test_copies_and_orthogonal_images_do_no_harm(cluster):
    labels = cluster(np.repeat(np.eye(3, dtype=np.float32), 4, axis=0), 3, 0)
    assert [len(set(own)) for own in labels.reshape(3, 4)] == [1, 1, 1]
    assert len(cluster(np.eye(6, dtype=np.float32), 2, 0)) == 6
