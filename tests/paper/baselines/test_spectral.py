from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import symmetrize_graph
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.nearest import nearest_images, negative_cityblock
from nouncut.paper.baselines.spectral import KERNEL_NAMES, cut_graph, kernel_graph
from nouncut.paper.baselines.tac import tac_features, text_counterparts
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like
from nouncut.words.filters import mean_prompt_features

DISTANCES = {
    "rbf": lambda x, y: float(np.sum((x - y) ** 2)),
    "exponential": lambda x, y: float(np.sqrt(np.sum((x - y) ** 2))),
    "laplacian": lambda x, y: float(np.sum(np.abs(x - y))),
}
PRODUCTS = {
    "linear": lambda x, y: max(float(x @ y), 0),
    "polynomial": lambda x, y: (1 + float(x @ y)) ** 3,
    "sigmoid": lambda x, y: max(float(np.tanh(x @ y)), 0),
}


def slow_graph(features: np.ndarray, kernel: str, q: int, tau: float | None = None) -> np.ndarray:
    """Return the directed graph, pair by pair."""
    n = len(features)
    values = np.full((n, n), -np.inf)
    for i in range(n):
        for j in range(n):
            if i != j and kernel in DISTANCES:
                values[i, j] = -DISTANCES[kernel](features[i], features[j])
            elif i != j:
                values[i, j] = PRODUCTS[kernel](features[i], features[j])
    chosen = np.zeros((n, n), dtype=bool)
    for i in range(n):
        chosen[i, np.argsort(-values[i], kind="stable")[:q]] = True
    if kernel in DISTANCES:
        values = np.exp(values / (-values[chosen].mean() if tau is None else tau))
    return np.where(chosen, values, 0)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_graphs_follow_the_formulas(kernel, seed):
    features = unit_rows(np.random.default_rng(seed).normal(size=(25, 3)))
    graph = kernel_graph(features, kernel, 4).toarray()
    np.testing.assert_allclose(graph, slow_graph(features, kernel, 4), atol=1e-10)


def slow_eq5(features: np.ndarray, q: int, tau: float) -> np.ndarray:
    """Return the paper's Eq. 5, pair by pair: both images must be near each other."""
    directed = slow_graph(features, "rbf", q, tau)
    return np.where((directed > 0) & (directed.T > 0), directed, 0)


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 25), st.integers(1, 6), st.floats(0.01, 2), st.integers(0, 2**31))
def test_the_mutual_graph_is_eq_5(n, q, tau, seed):
    features = unit_rows(np.random.default_rng(seed).normal(size=(n, 3)))
    graph = symmetrize_graph(kernel_graph(features, "rbf", q, tau), "mutual").toarray()
    np.testing.assert_allclose(graph, slow_eq5(features, min(q, n - 1), tau), atol=1e-10)


def test_clip_sc_cuts_eq_5_with_the_papers_constants(problem):
    # Classes that overlap: the eigenvectors of a graph in several parts are not unique.
    data = make_clip_like(200, 5, n_nouns=1, n_prompts=1, dim=64, separation=0.4, random_state=0)
    problem = replace(problem, visual=data.features)
    graph = csr_array(slow_eq5(problem.unit_visual.astype(np.float64), 30, 0.04))
    expected = cut_graph(graph, 5, 0)
    np.testing.assert_array_equal(METHODS["clip-sc-rbf"].fit_predict(problem, 0), expected)
    assert clustering_scores(METHODS["clip-sc-rbf-union"].fit_predict(problem, 0), expected).acc < 1


def test_tac_sc_cuts_eq_5_on_images_beside_texts(problem):
    texts = text_counterparts(problem.unit_semantic, mean_prompt_features(problem.nouns))
    # As TAC's code has them: two vectors of length one, not scaled together.
    joined = np.hstack([problem.unit_visual, texts]).astype(np.float64)
    expected = cut_graph(csr_array(slow_eq5(joined, 30, 0.04)), 5, 0)
    np.testing.assert_array_equal(METHODS["tac-sc-rbf"].fit_predict(problem, 0), expected)


@pytest.mark.parametrize("family", ["clip", "tac"])
def test_without_a_published_tau_the_mean_distance_is_the_width(problem, family):
    problem = replace(problem, tau=None)
    features = problem.unit_visual if family == "clip" else tac_features(problem, problem.nouns)
    directed = kernel_graph(features, "rbf", 30)
    for name, neighbors in ((f"{family}-sc-rbf", "mutual"), (f"{family}-sc-rbf-union", "union")):
        expected = cut_graph(symmetrize_graph(directed, neighbors), 5, 0)
        np.testing.assert_array_equal(METHODS[name].fit_predict(problem, 0), expected)


def test_identical_images_are_neighbours_of_each_other():
    graph = kernel_graph(np.ones((4, 1)), "rbf", 2)
    np.testing.assert_array_equal(graph.data, 1)
    assert not graph.diagonal().any()


@pytest.mark.parametrize("q", [1, 5, 100])
def test_nearest_images_are_those_of_a_full_sort(q):
    features = np.random.default_rng(q).normal(size=(40, 3))
    found = nearest_images(features, q, negative_cityblock)
    for i, row in enumerate(features):
        distances = np.abs(features - row).sum(axis=1)
        distances[i] = np.inf
        expected = np.argsort(distances, kind="stable")[: min(q, 39)]
        np.testing.assert_array_equal(found.indices[i], expected)
        np.testing.assert_allclose(found.similarities[i], -distances[expected])
