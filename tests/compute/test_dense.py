from __future__ import annotations

import numpy as np

from nouncut.compute.dense import inner_products, tall_product


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
