from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from nouncut.compute.pairs import empty_packed_rows, pack_rows, pair_products


@pytest.mark.parametrize("packed", [False, True])
def test_products_of_pairs(packed):
    rng = np.random.default_rng(0)
    X = rng.random((50, 700), dtype=np.float32)
    pairs = csr_array(random_array((50, 50), density=0.2, rng=1, format="csr"))
    rows = X
    if packed:
        rows = empty_packed_rows(*X.shape)
        pack_rows(X[:20], rows)
        pack_rows(X[20:], rows, first=20)
    found = pair_products(pairs, rows, n_threads=2)
    left, right = pairs.nonzero()
    expected = np.einsum("ij,ij->i", X[left], X[right])
    np.testing.assert_allclose(found, expected, rtol=1e-3 if packed else 1e-5)


def test_packed_rows_are_exact_to_half_a_unit():
    X = np.random.default_rng(0).random((30, 400), dtype=np.float32) ** 8
    X[3] = 0
    packed = empty_packed_rows(*X.shape)
    pack_rows(X, packed)
    errors = np.abs(packed.numbers * packed.units[:, None] - X).max(axis=1)
    assert np.all(errors <= X.max(axis=1) / 130_000)
