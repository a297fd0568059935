from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.paper.baselines.sic import sic_loss
from nouncut.paper.baselines.tac_heads import heads_loss
from nouncut.paper.baselines.training import balance, cluster_contrast, neighbor_consistency

torch = pytest.importorskip("torch")


def probabilities(seed: int, n: int, k: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


def slow_consistency(p, q):
    return -sum(
        np.log(sum(a * b for a, b in zip(x, y, strict=True))) for x, y in zip(p, q, strict=True)
    ) / len(p)


def slow_balance(p):
    means = [sum(column) / len(column) for column in p.T]
    return -sum(mean * np.log(mean) for mean in means)


def slow_contrast(p, q, temperature):
    columns = [*p.T, *q.T]
    k = p.shape[1]

    def similarity(a, b):
        return np.exp(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) / temperature)

    total = 0.0
    for i, column in enumerate(columns):
        partner = columns[i + k] if i < k else columns[i - k]
        others = sum(similarity(column, other) for j, other in enumerate(columns) if j != i)
        total -= np.log(similarity(column, partner) / others)
    return total / (2 * k)


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


shapes = st.tuples(st.integers(0, 1000), st.integers(1, 20), st.integers(2, 6))


@given(shapes)
@settings(max_examples=25, deadline=None)
def test_terms_follow_their_formulas(shape):
    seed, n, k = shape
    p, q = probabilities(seed, n, k), probabilities(seed + 1, n, k)
    assert neighbor_consistency(*tensors(p, q)).item() == pytest.approx(slow_consistency(p, q))
    assert balance(*tensors(p)).item() == pytest.approx(slow_balance(p))
    for temperature in (0.5, 5.0):
        found = cluster_contrast(*tensors(p, q), temperature).item()
        assert found == pytest.approx(slow_contrast(p, q, temperature))


def test_loss_of_tac_heads_is_the_sum_of_its_terms():
    p, q, p_near, q_near = (probabilities(seed, 12, 4) for seed in range(4))
    expected = (
        slow_contrast(p, q_near, 0.5)
        + slow_contrast(q, p_near, 0.5)
        + slow_consistency(q, p)
        - 5 * (slow_balance(q) + slow_balance(p))
    )
    assert heads_loss(*tensors(p, q, p_near, q_near), 0.5).item() == pytest.approx(expected)


def test_loss_of_sic_is_the_sum_of_its_terms():
    rng = np.random.default_rng(0)
    logits, near = rng.normal(size=(2, 9, 3))
    targets = rng.integers(3, size=9)
    p, p_near = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (logits, near))
    expected = slow_consistency(p, p_near) - 5 * slow_balance(p)
    expected -= sum(np.log(p[i, target]) for i, target in enumerate(targets)) / 9
    assert sic_loss(*tensors(logits, near, targets)).item() == pytest.approx(expected)


def test_terms_stay_finite_where_probabilities_vanish():
    p, q = torch.eye(3), torch.eye(3).roll(1, dims=0)
    for term in (neighbor_consistency(p, q), balance(p[:1]), cluster_contrast(p, q, 0.5)):
        assert torch.isfinite(term)
