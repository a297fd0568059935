from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, random_array

from nouncut.compute import sparse as sparse_module
from nouncut.errors import ParameterError
from nouncut.method.graphs import (
    excluded_images,
    expand_graph,
    isolated_images,
    mean_graph,
    normalize_graph,
    normalize_rows,
    stack_graphs,
    symmetrize_graph,
)


def directed_graph(seed: int, n: int = 12, density: float = 0.2) -> csr_array:
    return csr_array(random_array((n, n), density=density, rng=seed, format="csr"))


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_union_and_mutual_are_the_larger_and_the_smaller_direction(seed):
    graph = directed_graph(seed)
    dense = graph.toarray()
    union, mutual = symmetrize_graph(graph, "union"), symmetrize_graph(graph, "mutual")
    np.testing.assert_array_equal(union.toarray(), np.maximum(dense, dense.T))
    np.testing.assert_array_equal(mutual.toarray(), np.minimum(dense, dense.T))
    assert union.has_sorted_indices
    assert np.all(mutual.data > 0)


def test_unknown_symmetry_is_refused():
    with pytest.raises(ParameterError, match="`neighbors` must be one of 'union', 'mutual'"):
        symmetrize_graph(directed_graph(0), "both")


@given(st.integers(0, 1000), st.floats(1e-30, 1e30))
@settings(max_examples=30, deadline=None)
def test_normalised_graph_has_its_root_degrees_as_top_eigenvector(seed, scale):
    graph = symmetrize_graph(directed_graph(seed, density=0.4)) * scale
    normalized, degrees = normalize_graph(csr_array(graph))
    roots = np.sqrt(degrees)
    np.testing.assert_allclose(normalized @ roots, roots, rtol=1e-10)
    assert np.abs(np.linalg.eigvalsh(normalized.toarray())).max() <= 1 + 1e-10


def test_rows_of_a_graph_normalise_to_the_graph():
    graph = symmetrize_graph(directed_graph(3, density=0.5))
    normalized, degrees = normalize_graph(graph)
    np.testing.assert_allclose(
        normalize_rows(graph[:4], degrees).toarray(), normalized[:4].toarray()
    )


def test_weightless_graphs_leave_no_edges():
    one, two = csr_array(np.eye(3)), csr_array(np.eye(3)[::-1])
    assert mean_graph([one, two], np.array([1.0, 0.0])).nnz == 3


def test_isolated_images_are_excluded():
    blocks = [np.ones((3, 3)), np.zeros((2, 2)), np.ones((2, 2))]
    graph = csr_array(block_diag(blocks).toarray())
    np.testing.assert_array_equal(isolated_images(graph), [3, 4])
    np.testing.assert_array_equal(excluded_images(graph, n_clusters=2), [3, 4])


def test_small_components_are_excluded_only_if_there_are_too_many():
    sizes = (40, 30, 2, 2)
    graph = csr_array(block_diag([np.ones((size, size)) for size in sizes]))
    assert len(excluded_images(graph, n_clusters=4)) == 0
    np.testing.assert_array_equal(excluded_images(graph, n_clusters=2), [70, 71, 72, 73])
    # With one cluster wanted, only the largest component is cut; the others are placed later.
    np.testing.assert_array_equal(excluded_images(graph, n_clusters=1), np.arange(40, 74))


def test_expand_graph_keeps_edges_between_the_same_images():
    graph = symmetrize_graph(directed_graph(5))
    images = np.array([0, 3, 4, 7])
    small = graph[images][:, images]
    expanded = expand_graph(csr_array(small), images, 12)
    np.testing.assert_array_equal(expanded[images][:, images].toarray(), small.toarray())
    assert expanded.nnz == small.nnz


def test_a_stack_holds_every_graph(random_graphs, monkeypatch):
    graphs = random_graphs(30, 3, seed=0)
    monkeypatch.setattr(sparse_module, "_WORTH_ORDERING", 0)
    stack = stack_graphs(graphs)
    assert np.any(np.diff(stack.order) != 1)
    for number, graph in enumerate(graphs):
        own = stack.mean(np.eye(3)[number]).toarray()
        np.testing.assert_array_equal(own, graph.toarray()[stack.order][:, stack.order])
