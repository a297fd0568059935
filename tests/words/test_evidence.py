from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from nouncut.compute.rows import unit_rows
from nouncut.words.evidence import cluster_probabilities, information, spread_tau


@pytest.mark.parametrize(("n_images", "dtype"), [(60, np.float64), (600, np.float32)])
def test_probabilities_are_the_mean_over_images_moved_towards_their_mean(n_images, dtype):
    rng = np.random.default_rng(0)
    images = unit_rows(rng.normal(size=(n_images, 8))).astype(dtype)
    nouns = unit_rows(rng.normal(size=(20, 8))).astype(dtype)
    labels = rng.integers(-1, 3, size=n_images)
    found = cluster_probabilities(labels, images, nouns, 3, tau=0.1)
    threads = cluster_probabilities(labels, images, nouns, 3, tau=0.1, n_threads=3)
    np.testing.assert_array_equal(found, threads)
    for cluster in range(3):
        members = images[labels == cluster]
        moved = 0.75 * members + 0.25 * members.mean(axis=0)
        expected = softmax(moved @ nouns.T / 0.1, axis=1).mean(axis=0)
        np.testing.assert_allclose(found[cluster], expected, rtol=1e-5)


def test_large_clusters_are_sampled_evenly():
    # The first half of the images points at one noun, the second at the other.
    images = np.eye(2).repeat(5000, axis=0)
    found = cluster_probabilities(np.zeros(10_000, int), images, np.eye(2), 1, tau=0.1)
    np.testing.assert_allclose(found, [[0.5, 0.5]], atol=0.01)


def test_tau_follows_the_spread_of_the_cosines():
    rng = np.random.default_rng(0)
    images, nouns = unit_rows(rng.normal(size=(50, 64))), unit_rows(rng.normal(size=(3000, 64)))
    assert spread_tau(images, nouns) == pytest.approx(0.5 / 8, rel=0.05)
    assert spread_tau(images, np.ones((4, 64)) / 8) > 0


def test_nouns_that_all_clusters_share_say_little():
    probabilities = np.array([[0.6, 0.4, 0.0], [0.6, 0.0, 0.4]])
    told = information(probabilities, np.array([10, 10]), 1 / 3)
    assert told[0, 1] > 2 * told[0, 0]
    assert told[0, 2] == 0


def test_a_single_cluster_ranks_by_probability():
    told = information(np.array([[0.5, 0.3, 0.19, 0.01]]), np.array([10]), 0.01)
    assert (np.diff(told[0]) < 0).all()
    assert told[0, 0] > 0


def test_noise_in_single_images_is_averaged_out():
    rng = np.random.default_rng(0)
    nouns = unit_rows(rng.normal(size=(2000, 64)))
    labels = np.repeat(np.arange(10), 40)
    images = unit_rows(nouns[labels] + 0.3 * rng.normal(size=(400, 64)))
    alone = (images @ nouns.T).argmax(axis=1)
    together = cluster_probabilities(labels, images, nouns, 10, tau=0.05).argmax(axis=1)
    assert (alone == labels).mean() < 0.5
    assert together.tolist() == list(range(10))
