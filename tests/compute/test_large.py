from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.sparse import csr_array, random_array

from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.packing import empty_rows, pack_rows
from nouncut.compute.products import apply_series, pair_products
from nouncut.compute.softmax import softmax_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 7, 300])
def test_series_equal_the_dense_ones_for_any_number_of_threads(dtype, n_columns):
    rng = np.random.default_rng(0)
    S = random_array((60, 60), density=0.1, rng=0)
    S = csr_array((S + S.T) / 4)
    block = rng.normal(size=(60, n_columns)).astype(dtype)
    series = rng.normal(size=(2, 6))
    values, vectors = np.linalg.eigh(S.toarray())
    results = [apply_series(S, block, series, (-2, 1), n) for n in (1, 2, 3)]
    for c, found in zip(series, results[0], strict=True):
        expected = vectors * chebyshev.chebval((values + 0.5) / 1.5, c) @ vectors.T @ block
        np.testing.assert_allclose(found, expected, atol=1e-3 if dtype == np.float32 else 1e-10)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    apply_series(S, block, series[:1], (-2, 1), out=[block])
    np.testing.assert_array_equal(block, results[0][0])


def test_tall_products_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 20_000, 20)).astype(np.float32)
    R = rng.normal(size=(20, 20))
    for n_threads in (1, 2, 3):
        overlap = inner_products(X, Y, n_threads)
        np.testing.assert_array_equal(overlap, inner_products(X, Y))
        np.testing.assert_allclose(overlap, X.T.astype(float) @ Y, atol=1e-8)
        product = tall_product(X, R, n_threads)
        np.testing.assert_array_equal(product, tall_product(X, R))
        np.testing.assert_allclose(product, X @ R, atol=1e-4)
    tall_product(X, R, out=X)
    np.testing.assert_array_equal(X, product)


@pytest.mark.parametrize("packed", [False, True])
def test_products_of_pairs(packed):
    rng = np.random.default_rng(0)
    X = rng.random((50, 700), dtype=np.float32)
    pairs = csr_array(random_array((50, 50), density=0.2, rng=1, format="csr"))
    rows = X
    if packed:
        rows = empty_rows(*X.shape)
        pack_rows(X, rows)
    found = pair_products(pairs, rows, n_threads=2)
    left, right = pairs.nonzero()
    expected = np.einsum("ij,ij->i", X[left], X[right])
    np.testing.assert_allclose(found, expected, rtol=1e-3 if packed else 1e-5)


@pytest.mark.parametrize("tau", [1e-3, 0.04, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_equals_the_plain_one(tau, dtype):
    X = np.random.default_rng(0).uniform(-1, 1, size=(20, 333)).astype(dtype)
    logits = (X.astype(np.float64) - X.max(axis=1, keepdims=True)) / tau
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    softmax_rows(X, tau)
    np.testing.assert_allclose(X, expected, rtol=2e-4, atol=1e-30)
