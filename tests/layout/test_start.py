from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from nouncut.layout.start import initial_positions, neighbor_affinities

# Two triangles; image 6 has no edge and belongs to the second.
EDGES = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
LABELS = np.array([0, 0, 0, 1, 1, 1, 1])
EMBEDDING = np.eye(2)[LABELS]


def graph(extra: list[tuple[int, int]], weight: float = 1.0) -> csr_array:
    weights = np.zeros((7, 7))
    weights[tuple(np.transpose(EDGES))] = 1
    if extra:
        weights[tuple(np.transpose(extra))] = weight
    return csr_array(weights + weights.T)


def test_every_image_contributes_one():
    affinities = neighbor_affinities(EMBEDDING, graph([]), LABELS)
    assert abs(affinities - affinities.T).max() == 0
    assert affinities.sum() == pytest.approx(2 * len(LABELS))
    np.testing.assert_allclose(affinities.sum(axis=1)[:3], 2)


def test_an_image_without_edges_is_tied_to_its_cluster_only():
    affinities = neighbor_affinities(EMBEDDING, graph([]), LABELS).toarray()
    np.testing.assert_allclose(affinities[6], [0, 0, 0, 1 / 3, 1 / 3, 1 / 3, 0])


def test_edges_between_clusters_count_half():
    affinities = neighbor_affinities(EMBEDDING, graph([(2, 3)]), LABELS).toarray()
    assert affinities[2, 3] == pytest.approx(1 / 3)
    assert affinities[2, 1] == pytest.approx(1 / 3 + 1 / 2)


def test_an_image_between_two_clusters_starts_between_them():
    embedding = EMBEDDING.copy()
    embedding[2] = np.sqrt(0.5)
    rng = np.random.RandomState(0)
    positions = initial_positions(embedding, graph([(2, 3)], 0.1), LABELS, rng)
    assert positions.dtype == np.float32
    axis = positions[4] - positions[0]
    share = (positions[2] - positions[0]) @ axis / (axis @ axis)
    assert 0.2 < share < 0.8
