from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from nouncut.compute.eigen import top_eigenpairs
from nouncut.errors import ParameterError
from nouncut.method.count import count_clusters
from nouncut.method.graphs import (
    choose_neighbors,
    even_mean,
    neighbor_graph,
    normalize_graph,
    symmetrize_graph,
)
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like


def visual_graph(features, q=30):
    nearest = kernel_neighbors(features, [], q)[0]
    return normalize_graph(symmetrize_graph(neighbor_graph(nearest, len(features))))[0]


def blocks(sizes, background=0.01):
    """Return a graph of cliques with faint edges everywhere."""
    return block_diag([np.ones((size, size)) for size in sizes]).toarray() + background


def normalized(weights):
    return normalize_graph(csr_array(weights))[0]


@pytest.mark.parametrize("sizes", [[30, 30], [40, 25, 10], [15] * 12, [60, 30, 20, 15, 10, 10, 8]])
def test_cliques_are_counted(sizes):
    found = count_clusters(normalized(blocks(sizes)), max_clusters=25)
    assert found.n_clusters == len(sizes)
    assert found.confidence > 0.45


@pytest.fixture(scope="module")
def small_graph(small_data):
    return visual_graph(small_data.features)


@pytest.fixture(scope="module")
def small_count(small_graph):
    return count_clusters(small_graph, max_clusters=40, random_state=0)


@pytest.mark.parametrize("n_clusters", [2, 8, 20, 50])
@pytest.mark.parametrize("nouns", [False, True])
def test_made_classes_are_counted_to_a_tenth(prompt_graphs, n_clusters, nouns):
    n_images = (60 if n_clusters < 10 else 25) * n_clusters
    data = make_clip_like(n_images, n_clusters, n_prompts=3, separation=0.45, random_state=5)
    q = choose_neighbors(n_images, n_clusters)
    graph = even_mean(prompt_graphs(data, q=q)) if nouns else visual_graph(data.features, q)
    found = count_clusters(graph, max_clusters=70, random_state=0)
    assert abs(found.n_clusters - n_clusters) <= 0.1 * n_clusters


def test_classes_in_families_are_told_apart_where_the_largest_gap_sees_families():
    errors, gap_errors = [], []
    for seed in range(2):
        data = make_clip_like(900, 36, separation=0.42, random_state=seed)
        graph = visual_graph(data.features)
        pairs = top_eigenpairs(graph, 60, tol=1e-4, random_state=0)
        found = count_clusters(graph, eigenpairs=pairs)
        gap = 2 + int(np.argmax(-np.diff(pairs.values[1:])))
        errors.append(abs(np.log(found.n_clusters / 36)))
        gap_errors.append(abs(np.log(gap / 36)))
    assert max(errors) < 0.15
    assert np.mean(errors) < np.mean(gap_errors) / 2


def test_the_confidence_knows_classes_from_noise(small_count):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 40))
    noise = (noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float32)
    unclear = count_clusters(visual_graph(noise), random_state=0)
    assert 0 <= unclear.confidence < 0.1
    assert 0.6 < small_count.confidence <= 1


def test_known_eigenpairs_give_the_same_count_and_bound_it(small_graph, small_count):
    known = count_clusters(small_graph, eigenpairs=top_eigenpairs(small_graph, 40, random_state=1))
    assert known.n_clusters == small_count.n_clusters
    np.testing.assert_allclose(known.candidates, small_count.candidates, rtol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = top_eigenpairs(small_graph, 3)
        assert count_clusters(small_graph, eigenpairs=few).n_clusters <= 3


def test_candidates_are_distinct_and_in_order(small_count):
    numbers, scores = zip(*small_count.candidates, strict=True)
    assert numbers[0] == small_count.n_clusters
    assert list(scores) == sorted(scores, reverse=True)
    assert scores[-1] >= 0.5 * scores[0]
    for i, number in enumerate(numbers):
        assert all(abs(number - other) > 0.2 * other for other in numbers[:i])


def test_families_of_cliques_are_two_scales():
    weights = np.kron(np.eye(4), np.full((60, 60), 0.25)) + blocks([15] * 16, background=0.005)
    found = count_clusters(normalized(weights), max_clusters=40)
    assert {4, 16} <= {number for number, _ in found.candidates}


def test_the_order_of_images_does_not_matter(small_graph, small_count):
    order = np.random.default_rng(0).permutation(small_graph.shape[0])
    shuffled = csr_array(small_graph[order][:, order])
    found = count_clusters(shuffled, max_clusters=40, random_state=0)
    assert found.n_clusters == small_count.n_clusters
    assert found.confidence == pytest.approx(small_count.confidence, abs=1e-3)


def test_small_components_are_not_clusters():
    weights = blocks([30, 30, 30])
    small = [np.ones((2, 2))] * 12 + [np.zeros((1, 1))] * 20
    graph = normalized(block_diag([weights, *small]).toarray())
    assert count_clusters(graph, max_clusters=10).n_clusters == 3


@pytest.mark.parametrize("n_images", [2, 9])
def test_a_few_images_are_one_cluster(n_images):
    found = count_clusters(normalized(np.ones((n_images, n_images))))
    assert (found.n_clusters, found.confidence) == (1, 0.0)


def test_a_graph_without_edges_is_one_cluster():
    assert count_clusters(csr_array((50, 50))).n_clusters == 1


def test_reaching_the_largest_number_is_said():
    with pytest.warns(UserWarning, match="there may be more"):
        found = count_clusters(normalized(blocks([20] * 8)), max_clusters=6)
    assert found.n_clusters == 6


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="at least 1"):
        count_clusters(normalized(blocks([20] * 2)), max_clusters=0)
