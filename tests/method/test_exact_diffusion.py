from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nouncut.method import exact_diffusion as exact_module
from nouncut.method.diffusion import DiffusionOptions, diffused, simplex_weights
from nouncut.method.exact_diffusion import exact_diffusion
from nouncut.method.graphs import normalize_graph

CONVERGED = DiffusionOptions(tol=1e-12, max_inner_iter=2000)


def closed_form(graphs, weights, mu):
    """Solve Eq. 12 directly with Kronecker products."""
    n = graphs[0].shape[0]
    operator = np.eye(n * n)
    for weight, graph in zip(weights, graphs, strict=True):
        dense = graph.toarray()
        operator -= weight / (mu + 1) * np.kron(dense, dense)
    solution = np.linalg.solve(operator, np.eye(n).ravel())
    return mu / (mu + 1) * solution.reshape(n, n)


def objective(graphs, affinity, weights, mu, lam):
    """Write Eq. 9 out, with the square that Eq. 10 lacks, one prompt at a time."""
    identity = np.eye(len(affinity))
    losses = [
        np.sum(affinity**2) - np.sum(affinity * (graph.toarray() @ affinity @ graph.toarray()))
        for graph in graphs
    ]
    return (
        np.dot(weights, losses)
        + mu * np.sum((affinity - identity) ** 2)
        + lam / 2 * np.dot(weights, weights)
    )


@pytest.mark.parametrize("n_images", [5, 17, 30])
@pytest.mark.parametrize("n_prompts", [1, 3])
@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_affinity_equals_the_closed_form(random_graphs, n_images, n_prompts, mu):
    graphs = random_graphs(n_images, n_prompts, seed=n_images)
    affinity, _ = exact_diffusion(graphs, CONVERGED._replace(mu=mu, max_iter=1))
    # One outer step ends with the affinity of even weights.
    expected = closed_form(graphs, np.full(n_prompts, 1 / n_prompts), mu)
    np.testing.assert_allclose(affinity, expected, atol=1e-6)


def test_the_alternation_ends_in_a_joint_optimum(random_graphs):
    graphs = random_graphs(20, 3, seed=1)
    affinity, found = exact_diffusion(graphs, CONVERGED._replace(lam=0.1, max_iter=100))
    expected = closed_form(graphs, found.weights, 0.1)
    np.testing.assert_allclose(affinity, expected, atol=1e-6)
    np.testing.assert_allclose(found.weights, simplex_weights(found.losses, 0.1))


def test_one_prompt_is_a_function_of_its_graph(random_graphs):
    (graph,) = random_graphs(25, 1, seed=2)
    values, vectors = np.linalg.eigh(graph.toarray())
    expected = vectors * diffused(values, 0.1) @ vectors.T
    affinity, _ = exact_diffusion([graph], CONVERGED)
    np.testing.assert_allclose(affinity, expected, atol=1e-9)


@given(
    seed=st.integers(0, 1000),
    mu=st.floats(0.01, 10),
    lam=st.floats(0.01, 100),
    max_inner_iter=st.integers(1, 8),
)
@settings(max_examples=40, deadline=None)
def test_the_objective_is_eq_9_and_never_rises(seed, mu, lam, max_inner_iter):
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(3):
        weights = np.triu(rng.random((12, 12)), 1)
        graphs.append(normalize_graph(csr_array(weights + weights.T))[0])
    options = DiffusionOptions(mu, lam, max_iter=6, max_inner_iter=max_inner_iter)
    affinity, found = exact_diffusion(graphs, options)
    assert np.all(np.diff(found.objective) <= 1e-9 * found.objective[0])
    assert found.objective[-1] == pytest.approx(objective(graphs, affinity, found.weights, mu, lam))
    np.testing.assert_allclose(affinity, affinity.T, atol=1e-12)


def test_threads_change_nothing(random_graphs):
    graphs = random_graphs(200, 2, seed=3)
    one, two = (exact_diffusion(graphs, n_threads=n)[0] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_what_does_not_fit_in_memory_is_refused(random_graphs, monkeypatch):
    graphs = random_graphs(10, 2, seed=4)
    monkeypatch.setattr(exact_module, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r'needs 0\.0 GB.*`solver="spectral"`'):
        exact_diffusion(graphs)
