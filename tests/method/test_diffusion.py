from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from nouncut.compute import eigen as eigen_module
from nouncut.compute import patterns as patterns_module
from nouncut.compute.eigen import (
    guard_vectors,
    implicit_operator,
    operator_eigenpairs,
    top_eigenpairs,
)
from nouncut.compute.patterns import with_entries
from nouncut.method import diffusion as spectral_module
from nouncut.method import ensemble as ensemble_module
from nouncut.method.cut import dense_cut, diffused, implied_cut
from nouncut.method.diffusion import _common_pattern, spectral_diffusion
from nouncut.method.ensemble import ensemble_graphs
from nouncut.method.exact_diffusion import exact_diffusion
from nouncut.method.graphs import neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.labels import assign_labels
from nouncut.method.search import search_neighbors
from nouncut.paper.synthetic import make_clip_like

SETS = {
    "ten classes": {"n_images": 700, "n_clusters": 10, "separation": 0.25, "random_state": 0},
    "twenty classes": {"n_images": 800, "n_clusters": 20, "separation": 0.25, "random_state": 0},
    "few, hard classes": {"n_images": 600, "n_clusters": 5, "separation": 0.22, "random_state": 0},
    "few nouns": {"n_images": 600, "n_clusters": 4, "n_nouns": 40, "random_state": 2},
    "clear classes": {"n_images": 600, "n_clusters": 6, "separation": 0.45, "random_state": 3},
}


def kernel_graphs(data, q):
    X = data.features
    found = search_neighbors(X, X, data.noun_features, 0.04, q).neighbors
    graphs = (symmetrize_graph(neighbor_graph(near, len(X))) for near in found)
    return [normalize_graph(graph)[0] for graph in graphs]


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
def test_spectral_diffusion_agrees_with_exact_diffusion(name, cut, prompt_graphs):
    graphs = prompt_graphs(make_clip_like(**SETS[name]))
    n_clusters = SETS[name]["n_clusters"]
    exact = ensemble_graphs(graphs, n_clusters, solver="exact", cut=cut, n_threads=2)
    fast = ensemble_graphs(graphs, n_clusters, solver="spectral", cut=cut, random_state=0)
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


def share_of_subspace(exact, found):
    return np.mean(np.linalg.svd(exact.T @ found, compute_uv=False) ** 2)


HARD = {
    "ten images per cluster": (500, 50, 30, 0.45),
    "five images per cluster": (300, 60, 30, 0.45),
    "a third of all are neighbours": (450, 8, 150, 0.45),
    "clusters that overlap": (600, 8, 30, 0.2),
}


@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_the_implied_cut_is_the_dense_cut_of_the_diffused_affinity(name, iterated, monkeypatch):
    n_images, k, q, separation = HARD[name]
    if iterated:  # As where the matrix would be too large.
        monkeypatch.setattr(eigen_module, "_DENSE_OPERATOR", 0)
    data = make_clip_like(n_images, k, n_prompts=3, separation=separation, random_state=0)
    graphs = kernel_graphs(data, q)
    even = exact_diffusion(graphs, lam=1e12, max_iter=1, max_inner_iter=50, tol=1e-6, n_threads=2)
    expected, weights = dense_cut(even.affinity, k), even.prompt_weights
    order, pattern, edges = _common_pattern(graphs)
    pairs = top_eigenpairs(
        with_entries(pattern, weights @ edges), k, n_spare=guard_vectors(k), random_state=0
    )
    found = implied_cut(pattern, edges, weights, pairs, k, mu=0.1, random_state=0)
    found = found[np.argsort(order)]
    np.testing.assert_allclose(found.T @ found, np.eye(k), atol=1e-5)
    # One vector of eighty may be exchanged with the next: their eigenvalues differ by 1e-5.
    assert share_of_subspace(expected, found) > 0.985


def test_the_cut_of_negative_eigenvalues_converges_to_the_largest():
    """Plain subspace iteration would find the vectors of -0.9 and -0.8."""
    rng = np.random.default_rng(0)
    values = np.concatenate([[1.0, 0.03, 0.02], np.linspace(-0.9, 0.01, 1997)])
    basis = np.linalg.qr(rng.normal(size=(2000, 2000)))[0]
    matrix = basis * values @ basis.T
    operator = implicit_operator(lambda block: matrix @ block, -0.95)
    start = basis[:, :8] + 0.01 * rng.normal(size=(2000, 8))
    found = operator_eigenpairs(operator, start, 3, random_state=0)
    np.testing.assert_allclose(found.values[:3], values[:3], atol=1e-4)
    assert share_of_subspace(basis[:, :3], found.vectors[:, :3]) > 0.999


def test_eigenvectors_outside_the_starting_block_are_found():
    """The block knows nothing of the second eigenvector: only the check can find it."""
    values = np.concatenate([[1.0, 0.9, 0.5, 0.4], np.linspace(-0.5, 0.1, 1996)])
    operator = implicit_operator(lambda block: values[:, None] * block, -0.6)
    start = np.eye(2000)[:, [0, 2, 3, 10, 11, 12]]
    found = operator_eigenpairs(operator, start, 2, random_state=0)
    np.testing.assert_allclose(found.values[:2], [1.0, 0.9], atol=1e-4)


def test_the_objective_does_not_rise(small_data, prompt_graphs):
    found = spectral_diffusion(prompt_graphs(small_data), 5, lam=0.05, tol=1e-8, random_state=0)
    assert len(found.objective) > 2
    assert np.all(np.diff(found.objective) <= 1e-6 * found.objective[0])


@pytest.mark.parametrize("name", SETS)
def test_rounds_that_are_left_out_would_not_have_changed_the_weights(
    prompt_graphs, monkeypatch, name
):
    data = make_clip_like(n_prompts=4, **SETS[name])
    graphs = prompt_graphs(data)
    k = SETS[name]["n_clusters"]
    short = spectral_diffusion(graphs, k, lam=10.0, random_state=0)
    monkeypatch.setattr(spectral_module, "_relative_shift", lambda *_: np.inf)
    long = spectral_diffusion(graphs, k, lam=10.0, max_iter=8, random_state=0)
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
    found = ensemble_graphs([graph], 3, cut="diffused")
    assert found.solver is None
    assert found.graph is graph
    expected = np.linalg.eigvalsh(graph.toarray())[::-1][:3]
    np.testing.assert_allclose(found.eigenpairs.values, expected)


@pytest.mark.parametrize("solver", ["exact", "spectral"])
@pytest.mark.parametrize("n_graphs", [1, 3])
def test_the_mean_graph_is_normalised_again(random_graphs, n_graphs, solver):
    graphs = random_graphs(40, n_graphs, seed=0)
    found = ensemble_graphs(graphs, 3, solver=solver, random_state=0)
    mean = sum(w * g for w, g in zip(found.prompt_weights, graphs, strict=True))
    expected, degrees = normalize_graph(csr_array(mean))
    np.testing.assert_allclose(found.graph.toarray(), expected.toarray(), atol=1e-3)
    np.testing.assert_allclose(found.mean_degrees, degrees, atol=1e-3)
    values = np.linalg.eigvalsh(found.graph.toarray())[::-1][:3]
    np.testing.assert_allclose(found.eigenpairs.values, values, atol=1e-5)


def test_mixtures_of_many_vectors_tell_the_losses_as_well(prompt_graphs, monkeypatch):
    """With many clusters the overlaps of all pairs of vectors are estimated."""
    data = make_clip_like(900, 40, n_prompts=3, separation=0.4, random_state=0)
    graphs = prompt_graphs(data)
    exact = spectral_diffusion(graphs, 40, max_iter=1, random_state=0)
    monkeypatch.setattr(spectral_module, "_EXACT_OVERLAP", 0)
    estimated = spectral_diffusion(graphs, 40, max_iter=1, random_state=0)
    np.testing.assert_allclose(estimated.losses, exact.losses, rtol=1e-3)
    np.testing.assert_allclose(estimated.prompt_weights, exact.prompt_weights, atol=5e-3)


@pytest.mark.parametrize("cut", ["mean", "diffused"])
def test_single_precision_and_cache_order_change_no_cluster(cut, prompt_graphs, monkeypatch):
    data = make_clip_like(800, 20, n_prompts=3, separation=0.35, random_state=0)
    graphs = prompt_graphs(data)
    exact = ensemble_graphs(graphs, 20, solver="exact", cut=cut, n_threads=2)
    monkeypatch.setattr(eigen_module, "_DOUBLE_ENTRIES", 0)
    monkeypatch.setattr(eigen_module, "_DENSE_OPERATOR", 0)
    monkeypatch.setattr(patterns_module, "_WORTH_ORDERING", 0)
    fast = ensemble_graphs(graphs, 20, solver="spectral", cut=cut, random_state=0, n_threads=2)
    assert fast.eigenpairs.vectors.dtype == np.float32
    labels = [assign_labels(found.eigenpairs.vectors) for found in (exact, fast)]
    assert adjusted_rand_score(*labels) >= 0.98
    np.testing.assert_allclose(fast.prompt_weights, exact.prompt_weights, atol=0.02)
    np.testing.assert_allclose(fast.graph.toarray(), fast.graph.toarray().T, atol=1e-12)
