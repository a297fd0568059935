"""Clusters of clusters: what is joined first, which levels persist, and that levels nest."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.hierarchy import (
    MAX_LEVELS,
    join_clusters,
    nested_levels,
    persistent_counts,
)

IMAGES = 6


def planted(sizes, seed=0, within=0.2, between=0.002):
    """Return a graph of clusters that belong together in families, and the families."""
    rng = np.random.default_rng(seed)
    families = np.repeat(np.arange(len(sizes)), sizes)
    labels = np.repeat(np.arange(len(families)), IMAGES)
    same = families[:, None] == families
    strength = np.where(same, within, between) * np.exp(rng.normal(0, 0.3, same.shape))
    np.fill_diagonal(strength, 1)
    weights = np.triu(strength[np.ix_(labels, labels)], 1)
    return csr_array(weights + weights.T), labels, families


def random_graph(n_clusters, seed, density=0.3):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_clusters), IMAGES)
    weights = np.triu(rng.random((len(labels),) * 2), 1)
    weights[rng.random(weights.shape) > density] = 0
    return csr_array(weights + weights.T), labels


@pytest.mark.parametrize("sizes", [(4, 4, 4), (6, 3, 5, 4), (2, 10)])
def test_planted_families_are_the_level_that_persists(sizes):
    graph, labels, families = planted(sizes)
    tree = join_clusters(graph, labels)
    assert len(sizes) in persistent_counts(tree)
    np.testing.assert_array_equal(tree.level(len(sizes)), families)


def test_meaning_joins_what_the_graph_leaves_apart():
    labels = np.repeat(np.arange(6), IMAGES)
    graph = csr_array((labels[:, None] == labels).astype(float))
    meanings = np.eye(3)[[0, 1, 2, 0, 1, 2]] + 0.1 * np.eye(6, 3)
    tree = join_clusters(graph, labels, meanings[labels])
    assert tree.level(3).tolist() == [0, 1, 2, 0, 1, 2]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 14), st.integers(0, 1000), st.sampled_from([0.0, 0.02, 0.5]))
def test_levels_have_the_numbers_asked_for_and_nest(n_clusters, seed, density):
    tree = join_clusters(*random_graph(n_clusters, seed, density))
    counts = list(range(n_clusters + 2))
    levels = nested_levels(tree, counts)
    assert [level.max() + 1 for level in levels] == list(range(2, n_clusters))
    for coarse, fine in pairwise(levels):
        pairs = set(zip(fine.tolist(), coarse.tolist(), strict=True))
        assert len(pairs) == fine.max() + 1
    assert (tree.gaps() >= -1e-12).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 10), st.integers(0, 1000))
def test_joins_are_those_of_average_linkage_done_by_hand(n_clusters, seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_clusters), IMAGES)
    # Without a graph, only the cosines of the clusters' means count.
    rows = rng.normal(size=(len(labels), 5))
    tree = join_clusters(csr_array((len(labels),) * 2), labels, rows)
    means = unit_rows(
        np.array([unit_rows(rows)[labels == c].sum(axis=0) for c in labels[::IMAGES]])
    )
    cosines = means @ means.T
    groups = [[cluster] for cluster in range(n_clusters)]
    while len(groups) > 1:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
        i, j = max(pairs, key=lambda pair: cosines[np.ix_(groups[pair[0]], groups[pair[1]])].mean())
        groups[j] += groups.pop(i)
        expected = {frozenset(group) for group in groups}
        level = tree.level(len(groups))
        assert {frozenset(np.flatnonzero(level == g)) for g in level} == expected


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 40), st.integers(0, 1000))
def test_few_levels_are_chosen_and_each_halves_the_next(n_clusters, seed):
    counts = persistent_counts(join_clusters(*random_graph(n_clusters, seed)))
    assert len(counts) <= MAX_LEVELS
    for fewer, more in pairwise([*counts, n_clusters]):
        assert 2 * fewer <= more


def test_nothing_persists_where_all_clusters_are_alike():
    labels = np.repeat(np.arange(9), IMAGES)
    graph = csr_array(np.ones((len(labels),) * 2))
    assert persistent_counts(join_clusters(graph, labels)) == []
    # Directions without structure: a level appears now and then, by chance.
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), IMAGES)
    nothing = csr_array((len(labels),) * 2)
    found = [
        persistent_counts(join_clusters(nothing, labels, rng.normal(size=(30, 24))[labels]))
        for _ in range(40)
    ]
    assert np.mean([bool(counts) for counts in found]) <= 0.25


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_one_or_two_clusters_have_no_levels(n_clusters):
    tree = join_clusters(*random_graph(n_clusters, 0))
    assert nested_levels(tree) == nested_levels(tree, [1, 2, 3]) == []
    assert tree.level(1).tolist() == [0] * n_clusters
