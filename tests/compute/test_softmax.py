from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.softmax import softmax_rows


@pytest.mark.parametrize("tau", [1e-3, 0.04, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_equals_the_plain_one(tau, dtype):
    X = np.random.default_rng(0).uniform(-1, 1, size=(20, 333)).astype(dtype)
    logits = (X.astype(np.float64) - X.max(axis=1, keepdims=True)) / tau
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    softmax_rows(X, tau)
    np.testing.assert_allclose(X, expected, rtol=2e-4, atol=1e-30)
