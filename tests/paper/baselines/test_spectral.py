from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.nearest import nearest_images, negative_cityblock
from nouncut.paper.baselines.spectral import KERNEL_NAMES, kernel_graph

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
