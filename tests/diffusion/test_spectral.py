from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from nouncut.affinity import even_mean
from nouncut.compute import patterns as patterns_module
from nouncut.compute import with_entries
from nouncut.diffusion import (
    dense_cut,
    diffused,
    ensemble_graphs,
    implied_cut,
    spectral_diffusion,
)
from nouncut.diffusion import ensemble as ensemble_module
from nouncut.diffusion import spectral as spectral_module
from nouncut.diffusion.spectral import _common_pattern
from nouncut.evaluation import make_clip_like
from nouncut.spectral import assign_labels, top_eigenpairs
from nouncut.spectral import eigen as eigen_module

SETS = {
    "ten classes": {"n_images": 700, "n_clusters": 10, "separation": 0.25, "random_state": 0},
    "twenty classes": {"n_images": 800, "n_clusters": 20, "separation": 0.25, "random_state": 0},
    "few, hard classes": {"n_images": 600, "n_clusters": 5, "separation": 0.22, "random_state": 0},
    "few nouns": {"n_images": 600, "n_clusters": 4, "n_nouns": 40, "random_state": 2},
    "clear classes": {"n_images": 600, "n_clusters": 6, "separation": 0.45, "random_state": 3},
}


def dense_losses(graphs, weights, mu):
    """Evaluate the losses at f(S_bar) without any estimate."""
    mean = sum(w * graph.toarray() for w, graph in zip(weights, graphs, strict=True))
    values, vectors = np.linalg.eigh(mean)
    affinity = vectors * diffused(values, mu) @ vectors.T
    square = np.sum(affinity**2)
    sandwiches = (graph @ (graph @ affinity).T for graph in graphs)
    return np.array([square - np.sum(affinity * sandwich) for sandwich in sandwiches])


@pytest.mark.parametrize("name", SETS)
def test_spectral_diffusion_agrees_with_exact_diffusion(name, prompt_graphs):
    graphs = prompt_graphs(make_clip_like(**SETS[name]))
    n_clusters = SETS[name]["n_clusters"]
    exact = ensemble_graphs(graphs, n_clusters, solver="exact", n_threads=2)
    fast = ensemble_graphs(graphs, n_clusters, solver="spectral", random_state=0)
    labels = [assign_labels(found.eigenpairs.vectors) for found in (exact, fast)]
    assert adjusted_rand_score(*labels) >= 0.98
    np.testing.assert_allclose(fast.prompt_weights, exact.prompt_weights, atol=0.02)
    np.testing.assert_allclose(fast.losses, exact.losses, rtol=0.02)
    np.testing.assert_allclose(fast.objective[-1], exact.objective[-1], rtol=1e-3)


@pytest.mark.parametrize("neighbors", ["union", "mutual"])
def test_estimated_losses_are_those_of_the_diffused_mean_graph(neighbors, prompt_graphs):
    data = make_clip_like(500, 5, n_prompts=3, random_state=0)
    graphs = prompt_graphs(data, neighbors)
    found = spectral_diffusion(graphs, 5, max_iter=1, random_state=0)
    expected = dense_losses(graphs, np.full(3, 1 / 3), mu=0.1)
    np.testing.assert_allclose(found.losses, expected, rtol=0.005)
    # The differences between prompts decide the weights: their error must be smaller still.
    np.testing.assert_allclose(
        found.losses - found.losses.mean(), expected - expected.mean(), atol=0.01
    )


def test_estimates_are_unbiased(prompt_graphs):
    data = make_clip_like(420, 5, n_prompts=2, random_state=1)
    graphs = prompt_graphs(data)
    expected = dense_losses(graphs, np.full(2, 0.5), mu=0.1)
    estimates = np.array(
        [
            spectral_diffusion(graphs, 5, max_iter=1, n_probes=8, random_state=seed).losses
            for seed in range(40)
        ]
    )
    standard_error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(axis=0) - expected) < 4 * standard_error + 1e-4)


# The last one settles slowly: the span is renewed many times.
@pytest.mark.parametrize(("n_images", "k", "separation"), [(600, 8, 0.2), (400, 24, 0.25)])
def test_the_implied_cut_is_the_dense_cut_of_the_diffused_graph(
    prompt_graphs, n_images, k, separation
):
    data = make_clip_like(n_images, k, separation=separation, random_state=0)
    graph = even_mean(prompt_graphs(data))
    values, vectors = np.linalg.eigh(graph.toarray())
    expected = dense_cut(vectors * diffused(values, 0.1) @ vectors.T, k)
    pairs = top_eigenpairs(graph, k, n_spare=16, random_state=0)
    found = implied_cut(graph, pairs, k, mu=0.1)
    # The last vectors of close eigenvalues may be exchanged with the next ones.
    assert np.sort(np.linalg.svd(expected.T @ found)[1])[1] > 0.97
    np.testing.assert_allclose(found.T @ found, np.eye(k), atol=1e-9)


def test_the_objective_does_not_rise(small_data, prompt_graphs):
    found = spectral_diffusion(prompt_graphs(small_data), 5, lambda_=0.05, tol=1e-8, random_state=0)
    assert len(found.objective) > 2
    assert np.all(np.diff(found.objective) <= 1e-6 * found.objective[0])


@pytest.mark.parametrize("name", SETS)
def test_rounds_that_are_left_out_would_not_have_changed_the_weights(
    prompt_graphs, monkeypatch, name
):
    data = make_clip_like(n_prompts=4, **SETS[name])
    graphs = prompt_graphs(data)
    k = SETS[name]["n_clusters"]
    short = spectral_diffusion(graphs, k, lambda_=10.0, random_state=0)
    monkeypatch.setattr(spectral_module, "_relative_shift", lambda *_: np.inf)
    long = spectral_diffusion(graphs, k, lambda_=10.0, max_iter=8, random_state=0)
    assert len(short.objective) < len(long.objective)
    np.testing.assert_allclose(short.prompt_weights, long.prompt_weights, atol=2e-3)


def test_common_pattern_holds_every_graph(random_graphs, monkeypatch):
    graphs = random_graphs(30, 3, seed=0)
    monkeypatch.setattr(patterns_module, "_WORTH_ORDERING", 0)
    order, pattern, edges = _common_pattern(graphs)
    assert np.any(np.diff(order) != 1)
    for graph, own in zip(graphs, edges, strict=True):
        rebuilt = with_entries(pattern, own)
        np.testing.assert_array_equal(rebuilt.toarray(), graph.toarray()[order][:, order])


def test_auto_is_exact_for_few_images_and_spectral_for_many(
    random_graphs, prompt_graphs, monkeypatch
):
    assert ensemble_graphs(random_graphs(40, 2, 0), 3).solver == "exact"
    many = prompt_graphs(make_clip_like(600, 4, n_prompts=2, random_state=0))
    assert ensemble_graphs(many, 4, random_state=0).solver == "spectral"
    monkeypatch.setattr(ensemble_module, "available_memory", lambda: 1000)
    assert ensemble_graphs(random_graphs(40, 2, 0), 3, random_state=0).solver == "spectral"


def test_a_single_graph_is_cut_as_it_is(random_graphs):
    (graph,) = random_graphs(30, 1, seed=0)
    found = ensemble_graphs([graph], 3)
    assert found.solver is None
    assert found.graph is graph
    expected = np.linalg.eigvalsh(graph.toarray())[::-1][:3]
    np.testing.assert_allclose(found.eigenpairs.values, expected)


def test_mixtures_of_many_vectors_tell_the_losses_as_well(prompt_graphs, monkeypatch):
    """With many clusters the overlaps of all pairs of vectors are estimated."""
    data = make_clip_like(900, 40, n_prompts=3, separation=0.4, random_state=0)
    graphs = prompt_graphs(data)
    exact = spectral_diffusion(graphs, 40, max_iter=1, random_state=0)
    monkeypatch.setattr(spectral_module, "_EXACT_OVERLAP", 0)
    estimated = spectral_diffusion(graphs, 40, max_iter=1, random_state=0)
    np.testing.assert_allclose(estimated.losses, exact.losses, rtol=1e-3)
    np.testing.assert_allclose(estimated.prompt_weights, exact.prompt_weights, atol=5e-3)


def test_single_precision_and_cache_order_change_no_cluster(prompt_graphs, monkeypatch):
    data = make_clip_like(800, 20, n_prompts=3, separation=0.35, random_state=0)
    graphs = prompt_graphs(data)
    exact = ensemble_graphs(graphs, 20, solver="exact", n_threads=2)
    monkeypatch.setattr(eigen_module, "_DOUBLE_ENTRIES", 0)
    monkeypatch.setattr(patterns_module, "_WORTH_ORDERING", 0)
    fast = ensemble_graphs(graphs, 20, solver="spectral", random_state=0, n_threads=2)
    assert fast.eigenpairs.vectors.dtype == np.float32
    labels = [assign_labels(found.eigenpairs.vectors) for found in (exact, fast)]
    assert adjusted_rand_score(*labels) >= 0.98
    np.testing.assert_allclose(fast.prompt_weights, exact.prompt_weights, atol=0.02)
    np.testing.assert_allclose(fast.graph.toarray(), fast.graph.toarray().T, atol=1e-12)
