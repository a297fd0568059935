from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import homogeneity_score

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.density import assign_noise
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.problem import Problem


def test_noise_goes_to_the_nearest_mean_direction():
    angles = np.radians([0, 10, 20, 90, 100, 30, 60, 80])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = assign_noise(features, np.array([0, 0, 0, 1, 1, -1, -1, -1]))
    # The means are at 10 and 95 degrees.
    assert found.tolist() == [0, 0, 0, 1, 1, 0, 1, 1]
    assert assign_noise(features, np.full(8, -1)).tolist() == [0] * 8


def blobs(n_clusters: int, n: int) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(0)
    classes = np.arange(n) % n_clusters
    features = np.eye(16)[classes] + 0.05 * rng.normal(size=(n, 16))
    nothing = np.empty((0, 16))
    # Nothing but the images is needed, least of all the number of clusters.
    return Problem(unit_rows(features), nothing, 0, [], nothing, nothing, None), classes


# Both compile their code on first use, which takes minutes where coverage traces the compiler.
@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["evoc", "umap-hdbscan"])
def test_clusters_of_one_class_each_are_found_without_their_number(name):
    problem, classes = blobs(4, 200)
    labels = METHODS[name].fit_predict(problem, 0)
    assert labels.max() >= 3
    assert homogeneity_score(classes, labels) == pytest.approx(1)
    np.testing.assert_array_equal(METHODS[name].fit_predict(problem, 0), labels)
    few, _ = blobs(2, 6)
    assert METHODS[name].fit_predict(few, 0).tolist() == [0] * 6
