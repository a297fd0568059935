from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.paper.baselines.scan import scan_loss, self_label_loss
from nouncut.paper.baselines.sic import sic_loss
from nouncut.paper.baselines.tac_heads import heads_loss
from nouncut.paper.baselines.temi import temi_losses
from nouncut.paper.baselines.training import balance, cluster_contrast, neighbor_consistency
from nouncut.paper.baselines.turtle import turtle_loss


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


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("teaching", [1.0, 0.1])
def test_losses_of_scan_and_sic_are_the_sum_of_their_terms(teaching):
    rng = np.random.default_rng(0)
    logits, near = rng.normal(size=(2, 9, 3))
    targets = rng.integers(3, size=9)
    p, p_near = softmax(logits), softmax(near)
    expected = slow_consistency(p, p_near) - 5 * slow_balance(p)
    assert scan_loss(*tensors(logits, near)).item() == pytest.approx(expected)
    expected -= teaching * sum(np.log(p[i, target]) for i, target in enumerate(targets)) / 9
    assert sic_loss(*tensors(logits, near, targets), teaching).item() == pytest.approx(expected)


def test_self_labelling_counts_sure_images_alone_and_clusters_alike():
    p = np.array([[0.995, 0.005], [0.998, 0.002], [0.001, 0.999], [0.98, 0.02]])
    logits = np.array([[1.0, 0.0], [0.5, 0.0], [0.2, 0.4], [9.0, 0.0]])
    own = [-np.log(softmax(logits)[i, label]) for i, label in enumerate((0, 0, 1))]
    plain = self_label_loss(*tensors(p, logits), is_balanced=False).item()
    assert plain == pytest.approx(sum(own) / 3)
    balanced = self_label_loss(*tensors(p, logits), is_balanced=True).item()
    assert balanced == pytest.approx(((own[0] + own[1]) / 2 + own[2]) / 2)
    assert self_label_loss(*tensors(p[3:], logits[3:]), is_balanced=True).item() == 0


def slow_temi(p, q, marginal, beta):
    """p and q by head, image and cluster; images 0 to n-1 are paired with images n to 2n-1."""
    n_heads, n = len(p), p.shape[1] // 2
    losses = []
    for head in range(n_heads):
        total = 0.0
        for i in range(n):
            weight = sum(q[h, i] @ q[h, i + n] for h in range(n_heads)) / n_heads
            for x, y in ((i, i + n), (i + n, i)):
                terms = (p[head, x] * q[head, y]) ** beta / marginal[head, 0]
                total -= weight * np.log(terms.sum())
        losses.append(total / (2 * n))
    return losses


@pytest.mark.parametrize("beta", [1.0, 0.6])
def test_loss_of_temi_follows_its_formula(beta):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), size=(2, 3, 10))
    marginal = rng.dirichlet(np.ones(4), size=(3, 1))
    found = temi_losses(*tensors(p, q, marginal), beta)
    np.testing.assert_allclose(found, slow_temi(p, q, marginal, beta))


def test_temi_is_content_with_sure_and_equal_clusters():
    """With beta = 1 the loss is minus the mutual information, at best the log of their number."""
    p = torch.eye(4).repeat(1, 2, 1)
    marginal = torch.full((1, 1, 4), 0.25)
    assert temi_losses(p, p, marginal, 1.0).item() == pytest.approx(-np.log(4))
    unsure = torch.full((1, 8, 4), 0.25)
    assert temi_losses(unsure, unsure, marginal, 1.0).item() == pytest.approx(0, abs=1e-6)


def test_loss_of_turtle_follows_its_formula():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(2, 7))
    logits = rng.normal(size=(2, 7, 3))
    labels = (p[0] + p[1]) / 2
    expected = 0.0
    for space in range(2):
        log_predicted = np.log(softmax(logits[space]))
        expected -= sum(labels[i] @ log_predicted[i] for i in range(7)) / 7
        expected -= 10 * slow_balance(p[space])
    assert turtle_loss(tensors(*p), tensors(*logits), 10).item() == pytest.approx(expected)


def test_terms_stay_finite_where_probabilities_vanish():
    p, q = torch.eye(3), torch.eye(3).roll(1, dims=0)
    for term in (neighbor_consistency(p, q), balance(p[:1]), cluster_contrast(p, q, 0.5)):
        assert torch.isfinite(term)
