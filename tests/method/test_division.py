"""Whether clusters fall apart, and how strongly they are linked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array

from nouncut.method.division import bisect, divide, half_link, relative_links, usual_link
from nouncut.method.merge import cluster_edges


def blocks(sizes, between=0.01, seed=0):
    """Return a graph of dense blocks with weak edges between them."""
    rng = np.random.default_rng(seed)
    weights = block_diag([rng.uniform(0.5, 1, (n, n)) for n in sizes]).toarray()
    weights = np.where(weights, weights, between)
    np.fill_diagonal(weights, 0)
    return csr_array(np.maximum(weights, weights.T))


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_links_are_those_of_the_sums_of_edges(n_clusters, seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((20, 20)) * (rng.random((20, 20)) < 0.4)
    weights = weights + weights.T
    labels = np.concatenate([np.arange(n_clusters), rng.integers(0, n_clusters, 20 - n_clusters)])
    links = relative_links(cluster_edges(csr_array(weights), labels))
    for a in range(n_clusters):
        for b in range(n_clusters):
            across, *within = (
                weights[np.ix_(labels == i, labels == j)].sum() for i, j in ((a, b), (a, a), (b, b))
            )
            known = a != b and min(within) > 0
            expected = min(1, across / np.sqrt(within[0] * within[1])) if known else 0
            assert links[a, b] == pytest.approx(expected)


def test_halves_of_one_block_are_linked_as_strongly_as_images_within():
    graph = csr_array(np.ones((40, 40)))
    assert half_link(graph, np.arange(40) % 2) == pytest.approx(1)
    assert half_link(blocks([20, 20], between=0), np.arange(40) // 20) == 0


def test_a_graph_is_cut_where_it_is_thin():
    halves = bisect(blocks([30, 12]))
    assert {tuple(np.unique(halves[:30])), tuple(np.unique(halves[30:]))} == {(0,), (1,)}


def test_parts_of_less_than_a_cluster_do_not_count():
    assert bisect(csr_array(np.ones((9, 9)))) is None
    # Three images that nothing links with the others go with the larger part.
    halves = bisect(blocks([30, 12, 3], between=0))
    assert np.bincount(halves).tolist() in ([33, 12], [12, 33])


@pytest.mark.parametrize("sizes", [[30, 30], [40, 25, 12], [20, 20, 20, 20]])
def test_a_group_falls_into_as_many_parts_as_are_separate(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(1).permutation(len(labels))
    graph = blocks(sizes)[order][:, order]
    found = divide(graph, limit=0.2)
    pairs = set(zip(found.tolist(), labels[order].tolist(), strict=True))
    assert len(pairs) == len(sizes) == found.max() + 1


def test_a_group_without_parts_stays_whole_unless_there_is_nothing_to_compare_it_with():
    graph = blocks([30, 30], between=0.4)
    assert divide(graph, limit=0.2).max() == 0
    assert divide(graph, limit=None).max() == 1


def test_the_usual_link_is_that_of_the_nearest_clusters():
    edges = np.array([[4.0, 1, 0], [1, 4, 2], [0, 2, 4]])
    assert usual_link(edges) == 0.5
    assert usual_link(edges[:1, :1]) is None
