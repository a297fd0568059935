from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines import kmeans
from nouncut.paper.baselines.kmeans import spherical_kmeans
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.scores import clustering_scores


def slow_spherical_kmeans(unit: np.ndarray, centers: np.ndarray) -> tuple[list[int], float]:
    """Run one restart, image by image, and return labels and the sum of cosines."""
    for _ in range(100):
        labels = [int(np.argmax([center @ row for center in centers])) for row in unit]
        means = [
            np.sum([row for row, label in zip(unit, labels, strict=True) if label == k], axis=0)
            for k in range(len(centers))
        ]
        before, centers = centers, np.array([mean / np.linalg.norm(mean) for mean in means])
        if np.array_equal(before, centers):
            break
    return labels, sum(float(centers[k] @ row) for row, k in zip(unit, labels, strict=True))


def test_the_best_restart_is_as_good_as_any_slow_one():
    rng = np.random.default_rng(1)
    unit = unit_rows(rng.normal(size=(60, 4)) + 3 * np.eye(4)[np.arange(60) % 3])
    found = spherical_kmeans(unit.astype(np.float32), 3, 0)
    for _ in range(10):
        labels, score = slow_spherical_kmeans(unit, unit[rng.choice(60, 3, replace=False)])
        assert found.score >= score - 1e-4
        if score > found.score - 1e-4:
            assert clustering_scores(labels, found.labels).acc == 1


def test_labels_are_a_fixed_point_of_lloyds_step(data):
    found = spherical_kmeans(data.features, 5, 0)
    nearest = nearest_centers(data.features, found.centers)
    np.testing.assert_array_equal(nearest.labels, found.labels)
    assert nearest.cosines.sum() == pytest.approx(found.score, rel=1e-5)
    for label, center in enumerate(found.centers):
        mean = data.features[found.labels == label].mean(axis=0)
        np.testing.assert_allclose(center, mean / np.linalg.norm(mean), atol=1e-5)


def test_classes_are_found_with_any_number_of_threads(data, monkeypatch):
    labels = spherical_kmeans(data.features, 5, 3).labels
    assert clustering_scores(data.labels, labels).acc > 0.95
    monkeypatch.setattr(kmeans, "count_threads", lambda n_jobs: 1)
    np.testing.assert_array_equal(labels, spherical_kmeans(data.features, 5, 3).labels)


def test_more_clusters_than_distinct_images_do_no_harm():
    images = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    labels = spherical_kmeans(images, 3, 0).labels
    assert len(set(labels[:4])) == len(set(labels[4:])) == 1
