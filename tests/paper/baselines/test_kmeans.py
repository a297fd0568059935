from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines import kmeans
from nouncut.paper.baselines.kmeans import spherical_centers, spherical_kmeans
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like


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


def test_few_images_have_the_centers_of_the_best_of_ten_restarts(data):
    centers = spherical_centers(data.features, 12, 4)
    np.testing.assert_array_equal(centers, spherical_kmeans(data.features, 12, 4, 10).centers)


def test_centers_in_growing_samples_are_nearly_as_good(monkeypatch):
    features = make_clip_like(
        6000, 40, n_nouns=1, n_prompts=1, dim=32, separation=0.5, random_state=0
    ).features
    best = spherical_centers(features, 40, 0)
    monkeypatch.setattr(kmeans, "_MAX_COSINES", 0)
    centers = spherical_centers(features, 40, 0)
    fits = [1 - nearest_centers(features, own).cosines.mean() for own in (best, centers)]
    assert fits[1] < 1.03 * fits[0]
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-5)
    monkeypatch.setattr(kmeans, "count_threads", lambda n_jobs: 1)
    np.testing.assert_array_equal(spherical_centers(features, 40, 0), centers)


@pytest.mark.parametrize("max_cosines", [0, kmeans._MAX_COSINES])
def test_centers_without_images_are_left_out(monkeypatch, max_cosines):
    monkeypatch.setattr(kmeans, "_MAX_COSINES", max_cosines)
    images = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    centers = spherical_centers(images, 8, 0)
    assert len(np.unique(centers, axis=0)) == len(centers) <= 3
    np.testing.assert_allclose(nearest_centers(images, centers).cosines, 1)


def test_nearest_centers_of_some_rows():
    rng = np.random.default_rng(0)
    features, centers = rng.normal(size=(9000, 4)), rng.normal(size=(7, 4))
    rows = rng.permutation(9000)[:5000]
    found = nearest_centers(features, centers, rows=rows, n_threads=2)
    np.testing.assert_array_equal(found.labels, nearest_centers(features, centers).labels[rows])
    np.testing.assert_allclose(found.cosines, (features[rows] @ centers.T).max(axis=1), rtol=1e-6)
