from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.extension import extend_embedding


def test_an_image_lies_in_the_mean_direction_of_its_neighbours():
    vectors = np.array([[0.6, 0.8], [0.8, -0.6]])
    np.testing.assert_allclose(
        extend_embedding(csr_array(np.array([[3.0, 0.0], [1.0, 1.0]])), vectors),
        [[0.6, 0.8], np.array([1.4, 0.2]) / np.sqrt(2)],
    )


def test_an_image_without_edges_has_no_direction(random_graphs):
    (graph,) = random_graphs(20, 1, seed=0)
    nothing = graph[:1] * 0
    assert not extend_embedding(nothing, top_eigenpairs(graph, 2).vectors).any()
