from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import symmetrize_graph
from nouncut.paper.baselines.neighbors import nearest_images, negative_cityblock
from nouncut.paper.baselines.spectral import KERNEL_NAMES, KernelSpectralClustering, kernel_graph
from nouncut.paper.scores import clustering_scores

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


def slow_graph(features: np.ndarray, kernel: str, q: int) -> np.ndarray:
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
        values = np.exp(values / -values[chosen].mean())
    return np.where(chosen, values, 0)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_graphs_follow_the_formulas(kernel, seed):
    features = unit_rows(np.random.default_rng(seed).normal(size=(25, 3)))
    graph = kernel_graph(features, kernel, 4).toarray()
    np.testing.assert_allclose(graph, slow_graph(features, kernel, 4), atol=1e-10)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_every_kernel_finds_the_classes(data, kernel):
    model = KernelSpectralClustering(5, kernel=kernel, random_state=0).fit(data.features)
    assert clustering_scores(data.labels, model.labels_).acc > 0.95
    directed = kernel_graph(unit_rows(data.features), kernel, 30)
    np.testing.assert_allclose(
        model.graph_.toarray(), symmetrize_graph(directed, "union").toarray()
    )


def test_lengths_of_rows_do_not_matter(two_spaces):
    features = two_spaces[0]
    model = KernelSpectralClustering(5, random_state=0)
    labels = model.fit_predict(features)
    np.testing.assert_array_equal(labels, model.fit_predict(unit_rows(features)))


def test_mutual_graph_keeps_what_both_chose(data):
    model = KernelSpectralClustering(5, neighbors="mutual", random_state=0).fit(data.features)
    directed = kernel_graph(unit_rows(data.features), "rbf", 30).toarray() > 0
    np.testing.assert_array_equal(model.graph_.toarray() > 0, directed & directed.T)


def test_unknown_kernel_is_refused(data):
    with pytest.raises(ValueError, match="laplacian"):
        KernelSpectralClustering(5, kernel="cosine").fit(data.features)


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
        np.testing.assert_allclose(found.values[i], -distances[expected])
