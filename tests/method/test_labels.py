from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import qr

from nouncut.errors import ParameterError
from nouncut.method import labels as labels_module
from nouncut.method.labels import assign_labels, order_by_size

METHODS = ["discretize", "cluster_qr", "kmeans"]

# Two triangles joined by one edge, and a pair: by hand, {0, 1, 2}, {3, 4, 5} and {6, 7}.
HAND_MADE = np.array(
    [
        [0, 1, 1, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0.1, 0, 0, 0, 0],
        [0, 0, 0.1, 0, 1, 1, 0, 0],
        [0, 0, 0, 1, 0, 1, 0, 0],
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 1, 0],
    ]
)


@pytest.mark.parametrize("method", METHODS)
def test_a_hand_made_graph(method):
    roots = np.sqrt(HAND_MADE.sum(axis=1))
    vectors = np.linalg.eigh(HAND_MADE / np.outer(roots, roots))[1][:, -3:]
    labels = assign_labels(vectors, method, random_state=0)
    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 1, 1, 2, 2])


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_any_rotation_of_clear_clusters_is_undone(method, seed, k):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(k), rng.integers(0, k, size=40)])
    indicators = np.eye(k)[truth] * rng.uniform(0.5, 2, size=(len(truth), 1))
    vectors = indicators / np.linalg.norm(indicators, axis=0)
    rotation = qr(rng.normal(size=(k, k)))[0]
    labels = assign_labels(vectors @ rotation, method, random_state=0)
    np.testing.assert_array_equal(labels, order_by_size(truth))


@pytest.mark.parametrize("method", ["discretize", "cluster_qr"])
def test_permuting_images_permutes_labels(method):
    rng = np.random.default_rng(0)
    vectors = qr(rng.normal(size=(200, 4)) + 3 * np.eye(4)[rng.integers(0, 4, 200)])[0][:, :4]
    order = rng.permutation(200)
    labels = assign_labels(vectors, method)
    np.testing.assert_array_equal(
        order_by_size(assign_labels(vectors[order], method)), order_by_size(labels[order])
    )


def test_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="`assign_labels` must be one of 'discretize'"):
        assign_labels(np.eye(2), "guess")


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_order_by_size_is_a_renumbering(labels):
    original = np.array(labels)
    renumbered = order_by_size(original)
    pairs = set(zip(labels, renumbered.tolist(), strict=True))
    assert len(pairs) == len(set(labels)) == len(set(renumbered.tolist()))
    sizes = np.bincount(renumbered)
    assert np.all(np.diff(sizes) <= 0)
    assert np.all(sizes > 0)


@pytest.mark.parametrize("method", METHODS)
def test_large_problems_take_short_cuts_to_the_same_labels(method, monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.arange(12), rng.integers(0, 12, size=600)])
    noisy = np.eye(12)[truth] + 0.05 * rng.normal(size=(612, 12))
    vectors = qr(noisy, mode="economic")[0].astype(np.float32)
    for name in ("MANY_ENTRIES", "_LARGE_ROTATION"):
        monkeypatch.setattr(labels_module, name, 0)
    one, two = (assign_labels(vectors, method, random_state=0, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one, order_by_size(truth))
    np.testing.assert_array_equal(one, two)


def test_a_singular_matrix_has_a_nearest_rotation_too(monkeypatch):
    monkeypatch.setattr(labels_module, "_LARGE_ROTATION", 0)
    matrix = np.diag([3.0, 1.0, 0.0])
    rotation = labels_module._nearest_rotation(matrix)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(rotation[:2, :2], np.eye(2), atol=1e-12)
