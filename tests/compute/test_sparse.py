from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from scipy.sparse import csr_array, random_array

from nouncut.compute.sparse import (
    apply_series,
    cache_order,
    entries_in,
    reorder,
    sparse_product,
    with_entries,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (2000, 1500, 40), (90, 70, 300)])
def test_sparse_product_equals_scipys(dtype, n_threads, shape):
    n, m, k = shape
    S = csr_array(random_array((n, m), density=0.05, rng=0, format="csr").astype(dtype))
    X = np.random.default_rng(0).normal(size=(k, m)).astype(dtype).T
    result = sparse_product(S, X, n_threads)
    np.testing.assert_allclose(result, S @ X, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(result, sparse_product(S, X))
    assert result.dtype == dtype


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


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 12), seed=st.integers(0, 1000), n_threads=st.integers(1, 2))
def test_entries_in_a_pattern_are_those_of_the_dense_matrices(n, seed, n_threads):
    rng = np.random.default_rng(seed)
    pattern = csr_array((rng.random((n, n)) < 0.5).astype(float))
    dense = [rng.random((n, n)) * (rng.random((n, n)) < 0.4) for _ in range(3)]
    matrices = [csr_array(matrix) for matrix in dense]
    for matrix in matrices:  # Products leave the entries of a row in any order.
        for row in range(n):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            matrix.indices[part] = matrix.indices[part][::-1]
            matrix.data[part] = matrix.data[part][::-1]
        matrix.has_sorted_indices = False
    found = entries_in(pattern, matrices, n_threads)
    for own, expected in zip(found, dense, strict=True):
        rebuilt = with_entries(pattern, own).toarray()
        np.testing.assert_array_equal(rebuilt, expected * (pattern.toarray() > 0))


def test_cache_order_brings_neighbours_together():
    """A ring of images in random order: in cache order neighbours are at most two apart."""
    n = 6000
    mixed = np.random.default_rng(0).permutation(n)
    ring = csr_array((np.ones(n), (mixed, np.roll(mixed, 1))), shape=(n, n))
    ring = csr_array(ring + ring.T)
    order = cache_order(ring)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    rows, columns = reorder(ring, order).nonzero()
    assert np.abs(rows - columns).max() <= 2
    back = reorder(reorder(ring, order), np.argsort(order))
    assert (back != ring).nnz == 0
