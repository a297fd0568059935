from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.method.diffusion import diffused, simplex_weights


def solve_quadratic_programme(losses: list[float], lam: float) -> np.ndarray:
    """Minimise the objective exactly: try every set of positive weights in rational numbers."""
    exact, regularisation = [Fraction(loss) for loss in losses], Fraction(lam)
    best: tuple[Fraction, list[Fraction]] | None = None
    for size in range(1, len(losses) + 1):
        for support in combinations(range(len(losses)), size):
            eta = (sum(exact[b] for b in support) + regularisation) / size
            weights = [Fraction(0)] * len(losses)
            for b in support:
                weights[b] = (eta - exact[b]) / regularisation
            if min(weights) < 0:
                continue
            value = sum(
                w * loss + regularisation / 2 * w * w
                for w, loss in zip(weights, exact, strict=True)
            )
            if best is None or value < best[0]:
                best = value, weights
    assert best is not None
    return np.array([float(w) for w in best[1]])


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=7),
    st.floats(1e-2, 1e4),
)
@settings(max_examples=200, deadline=None)
def test_weights_equal_the_quadratic_programmes_answer(losses, lam):
    expected = solve_quadratic_programme(losses, lam)
    np.testing.assert_allclose(simplex_weights(losses, lam), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([42.0], [1.0]),
        ([7.0, 7.0, 7.0, 7.0], [0.25] * 4),
        ([3.0, 3.0, 1e12], [0.5, 0.5, 0.0]),
        ([0.0, 1e300], [1.0, 0.0]),
        ([10.0, 20.0], [1.0, 0.0]),
    ],
    ids=["one prompt", "all tied", "huge spread", "larger still", "on the boundary"],
)
def test_weights_by_hand(losses, expected):
    np.testing.assert_allclose(simplex_weights(losses, 10.0), expected, atol=1e-12)


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=7),
    st.floats(-1e6, 1e6),
)
@settings(max_examples=50, deadline=None)
def test_a_common_shift_changes_nothing(losses, shift):
    shifted = [loss + shift for loss in losses]
    np.testing.assert_allclose(
        simplex_weights(losses, 10.0), simplex_weights(shifted, 10.0), atol=1e-9
    )


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=7), st.floats(1e-3, 10), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_steps_of_the_diffusion_have_a_closed_form(eigenvalues, mu, n_steps):
    x = np.array(eigenvalues)
    expected = np.ones(len(x))
    for _ in range(n_steps):
        expected = (x**2 * expected + mu) / (1 + mu)
    np.testing.assert_allclose(diffused(x, mu, n_steps), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(diffused(x, mu, 10**9), diffused(x, mu), rtol=1e-9, atol=1e-12)
