"""The cut of the diffused affinity, implied by sparse graphs, against the dense one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nouncut.compute import eigen as eigen_module
from nouncut.compute.eigen import (
    guard_vectors,
    implicit_operator,
    operator_eigenpairs,
    top_eigenpairs,
)
from nouncut.method.cut import cut_graph, dense_cut, implied_cut
from nouncut.method.diffusion import DiffusionOptions
from nouncut.method.exact_diffusion import exact_diffusion
from nouncut.method.graphs import neighbor_graph, normalize_graph, stack_graphs, symmetrize_graph
from nouncut.method.kernel import Kernel
from nouncut.method.search import search_neighbors
from nouncut.paper.synthetic import make_clip_like

# Images, clusters, neighbours, separation.
HARD = {
    "ten images per cluster": (500, 50, 30, 0.45),
    "five images per cluster": (300, 60, 30, 0.45),
    "a third of all are neighbours": (450, 8, 150, 0.45),
    "clusters that overlap": (500, 8, 30, 0.2),
}
EVEN_WEIGHTS = DiffusionOptions(lam=1e12, max_iter=1, max_inner_iter=50, tol=1e-6)


@cache
def graphs_and_dense_cut(name):
    n_images, k, q, separation = HARD[name]
    data = make_clip_like(n_images, k, n_prompts=3, separation=separation, random_state=0)
    X = data.features
    found = search_neighbors(Kernel(X, X, data.noun_features, 0.04), q).neighbors
    graphs = [symmetrize_graph(neighbor_graph(near, len(X))) for near in found]
    graphs = [normalize_graph(graph)[0] for graph in graphs]
    affinity, even = exact_diffusion(graphs, EVEN_WEIGHTS, n_threads=2)
    return graphs, even.weights, dense_cut(affinity, k)


def share_of_subspace(exact, found):
    return np.mean(np.linalg.svd(exact.T @ found, compute_uv=False) ** 2)


@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_the_implied_cut_is_the_dense_cut_of_the_diffused_affinity(name, iterated, monkeypatch):
    graphs, weights, expected = graphs_and_dense_cut(name)
    k = HARD[name][1]
    if iterated:  # As for matrices that are too large for a dense solve.
        monkeypatch.setattr(eigen_module, "_DENSE_OPERATOR", 0)
    stack = stack_graphs(graphs)
    pairs = top_eigenpairs(stack.mean(weights), k, n_spare=guard_vectors(k), random_state=0)
    found = implied_cut(stack, weights, pairs, k, mu=0.1, random_state=0)[np.argsort(stack.order)]
    np.testing.assert_allclose(found.T @ found, np.eye(k), atol=1e-5)
    # One vector of eighty may be exchanged with the next: their eigenvalues differ by 1e-5.
    assert share_of_subspace(expected, found) > 0.985


@pytest.mark.parametrize("n_steps", [1, 2, 5])
@pytest.mark.parametrize("name", HARD)
def test_the_implied_cut_is_the_dense_cut_after_some_steps(name, n_steps):
    graphs, weights, _ = graphs_and_dense_cut(name)
    k = HARD[name][1]
    stack = stack_graphs(graphs)
    pairs = top_eigenpairs(stack.mean(weights), k, n_spare=guard_vectors(k), random_state=0)
    found = implied_cut(stack, weights, pairs, k, mu=0.1, n_steps=n_steps, random_state=0)
    options = EVEN_WEIGHTS._replace(max_inner_iter=n_steps, tol=0)
    expected = dense_cut(exact_diffusion(graphs, options)[0], k)
    assert share_of_subspace(expected, found[np.argsort(stack.order)]) > 0.985


def test_the_cut_of_negative_eigenvalues_converges_to_the_largest():
    """Plain subspace iteration would find the vectors of -0.9 and -0.8."""
    rng = np.random.default_rng(0)
    values = np.concatenate([[1.0, 0.03, 0.02], np.linspace(-0.9, 0.01, 1997)])
    mirror = rng.normal(size=(2000, 1)) / np.sqrt(2000)
    mirror /= np.linalg.norm(mirror)

    def reflected(block):
        return block - 2 * mirror * (mirror.T @ block)

    operator = implicit_operator(lambda block: reflected(values[:, None] * reflected(block)), -0.95)
    basis = reflected(np.eye(2000)[:, :8])
    start = basis + 0.01 * rng.normal(size=(2000, 8))
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


def test_a_cut_can_be_put_in_another_order(random_graphs):
    (graph,) = random_graphs(30, 1, seed=0)
    order = np.random.default_rng(0).permutation(30)
    cut = cut_graph(graph, 3)
    moved = cut.in_order(order)
    np.testing.assert_array_equal(moved.graph.toarray(), cut.graph.toarray()[order][:, order])
    np.testing.assert_array_equal(moved.mean_degrees, cut.mean_degrees[order])
    image = moved.graph @ moved.eigenpairs.vectors
    np.testing.assert_allclose(image, moved.eigenpairs.vectors * moved.eigenpairs.values, atol=1e-9)
