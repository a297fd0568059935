from __future__ import annotations

import numpy as np
import pytest

from nouncut.paper.baselines.kmeans import SphericalKMeans, nearest_centers
from nouncut.paper.scores import clustering_scores


def slow_spherical_kmeans(features: np.ndarray, centers: np.ndarray) -> tuple[list[int], float]:
    """Run one restart, image by image, and return labels and the sum of cosines."""
    unit = [row / np.linalg.norm(row) for row in features]
    for _ in range(100):
        labels = [int(np.argmax([center @ row for center in centers])) for row in unit]
        means = [
            np.sum([row for row, label in zip(unit, labels, strict=True) if label == k], axis=0)
            for k in range(len(centers))
        ]
        centers = np.array([mean / np.linalg.norm(mean) for mean in means])
    return labels, sum(float(centers[k] @ row) for row, k in zip(unit, labels, strict=True))


def test_best_restart_is_as_good_as_any_slow_one():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 4)) + 3 * np.eye(4)[np.arange(60) % 3]
    model = SphericalKMeans(3, random_state=0).fit(features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for _ in range(10):
        labels, score = slow_spherical_kmeans(features, unit[rng.choice(60, 3, replace=False)])
        assert model.score_ >= score - 1e-4
        if score > model.score_ - 1e-4:
            assert clustering_scores(labels, model.labels_).acc == 1


def test_labels_are_a_fixed_point_of_lloyds_step(data):
    model = SphericalKMeans(5, random_state=0).fit(data.features)
    found = nearest_centers(data.features, model.cluster_centers_)
    np.testing.assert_array_equal(found.labels, model.labels_)
    assert found.score == pytest.approx(model.score_, rel=1e-5)
    for label, center in enumerate(model.cluster_centers_):
        mean = data.features[model.labels_ == label].mean(axis=0)
        np.testing.assert_allclose(center, mean / np.linalg.norm(mean), atol=1e-5)


def test_classes_are_found_whatever_the_lengths_and_threads(data):
    model = SphericalKMeans(5, random_state=3)
    labels = model.fit_predict(data.features)
    assert clustering_scores(data.labels, labels).acc > 0.95
    lengths = np.random.default_rng(0).uniform(0.1, 50, size=(200, 1))
    np.testing.assert_array_equal(labels, model.fit_predict(data.features * lengths))
    np.testing.assert_array_equal(labels, model.set_params(n_jobs=1).fit_predict(data.features))


def test_more_clusters_than_distinct_images_do_no_harm():
    labels = SphericalKMeans(3, random_state=0).fit_predict(np.repeat(np.eye(2), 4, axis=0))
    assert len(set(labels[:4])) == len(set(labels[4:])) == 1
