"""The spectral solver against exact diffusion and dense evaluation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from nouncut.compute import eigen as eigen_module
from nouncut.compute import sparse as sparse_module
from nouncut.method import spectral_diffusion as spectral_module
from nouncut.method.cut import cut_affinity, cut_graph, dense_cut
from nouncut.method.diffusion import DiffusionOptions, diffused
from nouncut.method.exact_diffusion import exact_diffusion
from nouncut.method.graphs import mean_graph
from nouncut.method.labels import assign_labels
from nouncut.method.spectral_diffusion import random_probes, spectral_diffusion
from nouncut.paper.synthetic import make_clip_like

# More than 400 images, below which the whole spectrum is known and nothing is estimated.
SETS = {
    "ten classes": {"n_images": 500, "n_clusters": 10, "separation": 0.25, "random_state": 0},
    "twenty classes": {"n_images": 600, "n_clusters": 20, "separation": 0.25, "random_state": 0},
    "few, hard classes": {"n_images": 500, "n_clusters": 5, "separation": 0.22, "random_state": 0},
    "few nouns": {"n_images": 450, "n_clusters": 4, "n_nouns": 40, "random_state": 2},
    "clear classes": {"n_images": 450, "n_clusters": 6, "separation": 0.45, "random_state": 3},
}
ONE_STEP = DiffusionOptions(max_iter=1)


@pytest.fixture(scope="module")
def graphs_of(prompt_graphs):
    return cache(lambda name: prompt_graphs(make_clip_like(n_prompts=5, **SETS[name])))


@pytest.fixture(scope="module")
def exact_of(graphs_of):
    return cache(lambda name: exact_diffusion(graphs_of(name), n_threads=2))


def dense_losses(graphs, weights, mu):
    """Evaluate the losses at f(S_bar) without any estimate."""
    mean = sum(w * graph.toarray() for w, graph in zip(weights, graphs, strict=True))
    values, vectors = np.linalg.eigh(mean)
    affinity = vectors * diffused(values, mu) @ vectors.T
    square = np.sum(affinity**2)
    sandwiches = (graph @ (graph @ affinity).T for graph in graphs)
    return np.array([square - np.sum(affinity * sandwich) for sandwich in sandwiches])


@pytest.mark.parametrize("cut", ["mean", "diffused"])
@pytest.mark.parametrize("name", SETS)
def test_it_agrees_with_exact_diffusion(name, cut, graphs_of, exact_of):
    graphs, k = graphs_of(name), SETS[name]["n_clusters"]
    affinity, exact = exact_of(name)
    mean = mean_graph(graphs, exact.weights)
    expected = cut_graph(mean, k) if cut == "mean" else cut_affinity(affinity, mean, k)
    found, prompts = spectral_diffusion(graphs, k, cut=cut, random_state=0)
    labels = [assign_labels(one.eigenpairs.vectors) for one in (expected, found)]
    assert adjusted_rand_score(*labels) >= 0.98
    np.testing.assert_allclose(prompts.weights, exact.weights, atol=0.02)
    np.testing.assert_allclose(prompts.losses, exact.losses, rtol=0.02)
    np.testing.assert_allclose(prompts.objective[-1], exact.objective[-1], rtol=1e-3)


@pytest.mark.parametrize("name", SETS)
def test_single_steps_are_those_of_the_published_iteration(name, graphs_of):
    graphs, k = graphs_of(name), SETS[name]["n_clusters"]
    options = DiffusionOptions(max_iter=8, single_steps=True)
    affinity, exact = exact_diffusion(graphs, options, n_threads=2)
    found, prompts = spectral_diffusion(graphs, k, options, cut="diffused", random_state=0)
    assert len(prompts.objective) == len(exact.objective) == 8
    # Over these steps the objective falls by 0.4 to 2 %.
    np.testing.assert_allclose(prompts.objective, exact.objective, rtol=1.5e-3)
    assert np.all(np.diff(prompts.objective) < 0)
    np.testing.assert_allclose(prompts.steps, exact.steps, atol=0.02)
    expected = assign_labels(dense_cut(affinity, k))
    assert adjusted_rand_score(expected, assign_labels(found.eigenpairs.vectors)) >= 0.97


@pytest.mark.parametrize("neighbors", ["union", "mutual"])
def test_estimated_losses_are_those_of_the_diffused_mean_graph(neighbors, prompt_graphs):
    data = make_clip_like(500, 5, n_prompts=3, random_state=0)
    graphs = prompt_graphs(data, neighbors)
    losses = spectral_diffusion(graphs, 5, ONE_STEP, random_state=0)[1].losses
    expected = dense_losses(graphs, np.full(3, 1 / 3), mu=0.1)
    np.testing.assert_allclose(losses, expected, rtol=0.005)
    # The differences between prompts decide the weights: their error must be smaller still.
    np.testing.assert_allclose(losses - losses.mean(), expected - expected.mean(), atol=0.01)


def test_estimates_are_unbiased(prompt_graphs):
    graphs = prompt_graphs(make_clip_like(420, 5, n_prompts=2, random_state=1))
    expected = dense_losses(graphs, np.full(2, 0.5), mu=0.1)
    rng = np.random.default_rng(0)
    # The number of an image decides about its probes.
    orders = [rng.permutation(420) for _ in range(30)]
    estimates = np.array(
        [
            spectral_diffusion(
                [graph[order][:, order] for graph in graphs], 5, ONE_STEP, random_state=0
            )[1].losses
            for order in orders
        ]
    )
    standard_error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(axis=0) - expected) < 4 * standard_error + 1e-4)


def test_probes_are_independent_signs():
    probes = random_probes(np.arange(40_000))
    assert set(np.unique(probes)) == {-1.0, 1.0}
    # Sums of 40,000 independent signs have a standard deviation of 200.
    overlaps = probes.T @ probes - 40_000 * np.eye(probes.shape[1])
    assert np.abs(overlaps).max() < 5 * 200
    assert np.abs(probes.sum(axis=0)).max() < 4 * 200
    assert np.abs(np.sum(probes[1:] * probes[:-1], axis=0)).max() < 4 * 200
    some = np.array([39_999, 7, 123])
    assert np.array_equal(random_probes(some), probes[some])


def test_the_objective_does_not_rise(small_data, prompt_graphs):
    options = DiffusionOptions(lam=0.05, tol=1e-8)
    _, found = spectral_diffusion(prompt_graphs(small_data), 5, options, random_state=0)
    assert len(found.objective) > 2
    assert np.all(np.diff(found.objective) <= 1e-6 * found.objective[0])


@pytest.mark.parametrize("name", SETS)
def test_rounds_that_are_left_out_would_not_have_changed_the_weights(graphs_of, monkeypatch, name):
    graphs, k = graphs_of(name), SETS[name]["n_clusters"]
    short = spectral_diffusion(graphs, k, random_state=0)[1]
    monkeypatch.setattr(spectral_module._StackProblem, "shift", lambda *_: np.inf)
    long = spectral_diffusion(graphs, k, DiffusionOptions(max_iter=8), random_state=0)[1]
    assert len(short.objective) < len(long.objective)
    np.testing.assert_allclose(short.weights, long.weights, atol=2e-3)


def test_mixtures_of_many_vectors_give_the_losses_too(prompt_graphs, monkeypatch):
    """With many clusters the overlaps of all pairs of vectors are estimated."""
    graphs = prompt_graphs(make_clip_like(900, 40, n_prompts=3, separation=0.4, random_state=0))
    exact = spectral_diffusion(graphs, 40, ONE_STEP, random_state=0)[1]
    monkeypatch.setattr(spectral_module, "_EXACT_OVERLAP", 0)
    estimated = spectral_diffusion(graphs, 40, ONE_STEP, random_state=0)[1]
    np.testing.assert_allclose(estimated.losses, exact.losses, rtol=1e-3)
    np.testing.assert_allclose(estimated.weights, exact.weights, atol=5e-3)


@pytest.mark.parametrize("cut", ["mean", "diffused"])
def test_the_ways_of_large_sets_change_no_cluster(cut, graphs_of, exact_of, monkeypatch):
    """Single precision, cache order and iteration in place of a dense solve."""
    graphs, (affinity, exact) = graphs_of("twenty classes"), exact_of("twenty classes")
    mean = mean_graph(graphs, exact.weights)
    expected = cut_graph(mean, 20) if cut == "mean" else cut_affinity(affinity, mean, 20)
    monkeypatch.setattr(eigen_module, "_DOUBLE_ENTRIES", 0)
    monkeypatch.setattr(eigen_module, "_DENSE_OPERATOR", 0)
    monkeypatch.setattr(sparse_module, "_WORTH_ORDERING", 0)
    found, prompts = spectral_diffusion(graphs, 20, cut=cut, random_state=0, n_threads=2)
    assert found.eigenpairs.vectors.dtype == np.float32
    labels = [assign_labels(one.eigenpairs.vectors) for one in (expected, found)]
    assert adjusted_rand_score(*labels) >= 0.98
    np.testing.assert_allclose(prompts.weights, exact.weights, atol=0.02)
    np.testing.assert_allclose(found.graph.toarray(), found.graph.toarray().T, atol=1e-12)
