from __future__ import annotations

import numpy as np

from nouncut.affinity import unit_rows
from nouncut.spectral import extend_embedding, top_eigenpairs


def test_the_extension_of_a_graphs_own_rows_is_its_embedding(random_graphs):
    (graph,) = random_graphs(60, 1, seed=0)
    pairs = top_eigenpairs(graph, 3)
    np.testing.assert_allclose(
        extend_embedding(graph[:7], pairs), unit_rows(pairs.vectors)[:7], atol=1e-10
    )


def test_an_image_without_edges_has_no_direction(random_graphs):
    (graph,) = random_graphs(20, 1, seed=0)
    nothing = graph[:1] * 0
    assert not extend_embedding(nothing, top_eigenpairs(graph, 2)).any()
