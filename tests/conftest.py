from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from nouncut.affinity import (
    kernel_neighbors,
    neighbor_graph,
    normalize_graph,
    noun_probabilities,
    symmetrize_graph,
)
from nouncut.evaluation import ClipLikeData, make_clip_like


@pytest.fixture(scope="session")
def prompt_graphs():
    """Return a maker of the normalised graphs of all prompts, built as the estimator does."""

    def make(data: ClipLikeData, neighbors: str = "union", tau: float = 0.04) -> list[csr_array]:
        probabilities = noun_probabilities(data.features, data.noun_features, tau)
        found = kernel_neighbors(data.features, probabilities, 30, scale=tau**-2)
        directed = [neighbor_graph(nearest, len(data.features)) for nearest in found]
        return [normalize_graph(symmetrize_graph(graph, neighbors))[0] for graph in directed]

    return make


@pytest.fixture(scope="session")
def small_data() -> ClipLikeData:
    return make_clip_like(400, 5, n_prompts=3, n_nouns=80, separation=0.45, random_state=0)


@pytest.fixture
def random_graphs():
    """Return a maker of small normalised graphs with positive random weights."""

    def make(n_images: int, n_graphs: int, seed: int) -> list[csr_array]:
        rng = np.random.default_rng(seed)
        graphs = []
        for _ in range(n_graphs):
            weights = np.triu(rng.random((n_images, n_images)) ** 4, 1)
            weights[weights < 0.05] = 0
            graphs.append(normalize_graph(csr_array(weights + weights.T))[0])
        return graphs

    return make
