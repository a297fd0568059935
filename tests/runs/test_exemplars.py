"""Cohesion, typical and borderline images, against slow oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from nouncut.method.membership import Membership
from nouncut.runs.exemplars import N_EXEMPLARS, borderline_images, cohesion, typical_images


def sample(seed):
    """Return a random graph with labels 0 to k - 1, all of them used."""
    rng = np.random.default_rng(seed)
    n_images, n_clusters = rng.integers(4, 60), rng.integers(1, 5)
    weights = np.triu(
        rng.random((n_images, n_images)) * (rng.random((n_images, n_images)) < 0.3), 1
    )
    labels = rng.permutation(np.r_[np.arange(n_clusters), rng.integers(0, n_clusters, n_images)])
    return weights + weights.T, labels[:n_images] if n_clusters == 1 else relabel(labels[:n_images])


def relabel(labels):
    return np.unique(labels, return_inverse=True)[1]


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_cohesion_is_the_share_of_edges_that_stay(seed):
    weights, labels = sample(seed)
    expected = []
    for cluster in range(labels.max() + 1):
        inside = [i for i, label in enumerate(labels) if label == cluster]
        kept = sum(weights[i, j] for i in inside for j in inside)
        total = sum(weights[i, j] for i in inside for j in range(len(labels)))
        expected.append(kept / total if total else 1.0)
    assert_allclose(cohesion(csr_array(weights), labels), expected, atol=1e-12)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_typical_images_have_the_heaviest_edges_into_their_cluster(seed, has_copies):
    weights, labels = sample(seed)
    contents = np.random.default_rng(seed).integers(0, 9, len(labels)) if has_copies else None
    hashes = None if contents is None else tuple(f"hash {content}" for content in contents)
    found = typical_images(csr_array(weights), labels, hashes)
    assert len(found) == labels.max() + 1
    for cluster, images in enumerate(found):
        inside = np.flatnonzero(labels == cluster)
        own = {i: weights[i, inside].sum() for i in inside}
        order = sorted(inside, key=lambda i: (-own[i], i))
        if hashes is not None:
            firsts = {}
            for i in order:
                firsts.setdefault(hashes[i], i)
            order = list(firsts.values())
        assert len(images) == min(N_EXEMPLARS, len(order))
        # Sums in another order differ in the last bit, and so may the order of equals.
        assert_allclose([own[i] for i in images], [own[i] for i in order[:N_EXEMPLARS]], atol=1e-9)
        assert set(images) <= set(inside)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_borderline_images_are_the_torn_ones_the_least_sure_first(seed):
    rng = np.random.default_rng(seed)
    n_images, n_clusters = int(rng.integers(2, 80)), int(rng.integers(2, 4))
    label = relabel(rng.integers(0, n_clusters, n_images))
    confidence = rng.uniform(0.3, 1, n_images)
    second = rng.uniform(0, 1 - confidence)
    found = borderline_images(Membership(label, confidence, (label + 1) % n_clusters, second))
    for cluster in range(label.max() + 1):
        torn = [i for i in range(n_images) if label[i] == cluster and confidence[i] < 2 * second[i]]
        torn.sort(key=lambda i: (confidence[i] - second[i], i))
        assert found[cluster] == torn[:N_EXEMPLARS]


def test_clusters_without_edges_are_cohesive():
    assert cohesion(csr_array((3, 3)), np.array([0, 1, 1])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("n_images", [1, 3, 40])
def test_copies_are_left_out_of_the_typical_images(n_images):
    weights = np.ones((n_images, n_images)) - np.eye(n_images)
    hashes = ("the same",) * n_images
    assert typical_images(csr_array(weights), np.zeros(n_images, dtype=int), hashes) == [[0]]
