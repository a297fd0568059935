from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from nouncut.compute.chebyshev import apply_functions


def test_functions_of_a_matrix_equal_the_dense_ones():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 40))
    dense = (dense + dense.T) / 30
    values, vectors = np.linalg.eigh(dense)
    block = rng.normal(size=(40, 3))
    functions = [np.exp, lambda x: 1 / (2 - x)]
    found = apply_functions(functions, csr_array(dense), block, (values[0], values[-1]), tol=1e-12)
    for function, result in zip(functions, found, strict=True):
        np.testing.assert_allclose(result, vectors * function(values) @ vectors.T @ block)


def test_a_single_eigenvalue_has_an_interval_too():
    block = np.random.default_rng(0).normal(size=(5, 2))
    (found,) = apply_functions([np.exp], csr_array(0.3 * np.eye(5)), block, (0.3, 0.3))
    np.testing.assert_allclose(found, np.exp(0.3) * block, rtol=1e-4)
