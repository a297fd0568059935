"""Small clusters, dense graphs and new images: where the spectral solver used to fail."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from nouncut import NTKSpectralClustering
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

# Images, clusters, neighbours.
HARD = [(300, 5, 100), (500, 50, 30), (200, 40, 30), (500, 50, "auto"), (200, 40, "auto")]


@cache
def fitted(n_images, n_clusters, n_neighbors, **options):
    data = make_clip_like(2 * n_images, n_clusters, n_prompts=3, random_state=1)
    model = NTKSpectralClustering(
        n_clusters, n_neighbors=n_neighbors, random_state=0, n_jobs=2, **options
    )
    return data, model.fit(data.features[:n_images], noun_features=data.noun_features)


def accuracy(data, model):
    return clustering_scores(data.labels[: len(model.labels_)], model.labels_).acc


@pytest.mark.parametrize("ensemble", ["weighted", "diffusion"])
@pytest.mark.parametrize("case", HARD, ids=str)
def test_the_fast_solver_is_as_right_as_the_exact_one(case, ensemble):
    data, exact = fitted(*case, ensemble=ensemble, solver="exact")
    _, fast = fitted(*case, ensemble=ensemble, solver="spectral")
    assert accuracy(data, fast) >= accuracy(data, exact) - 0.02


@pytest.mark.parametrize("case", [(500, 50), (200, 40)], ids=str)
def test_the_default_finds_small_clusters(case):
    data, model = fitted(*case, "auto", solver="spectral")
    assert accuracy(data, model) > 0.9


@pytest.mark.parametrize("ensemble", ["weighted", "diffusion"])
@pytest.mark.parametrize("case", HARD, ids=str)
def test_fitted_images_keep_their_labels(case, ensemble):
    data, model = fitted(*case, ensemble=ensemble, solver="spectral")
    images = data.features[: case[0]]
    np.testing.assert_array_equal(model.predict(images), model.labels_)
    # Rounding changes the last digits of the rows: they are recognised all the same.
    assert np.mean(model.predict(images.astype(np.float64) * 1.3) == model.labels_) >= 0.97


@pytest.mark.parametrize("ensemble", ["weighted", "diffusion"])
@pytest.mark.parametrize("case", HARD, ids=str)
def test_new_images_do_better_than_with_their_nearest_neighbour(case, ensemble):
    data, model = fitted(*case, ensemble=ensemble, solver="spectral")
    n = case[0]
    known, new, classes = data.features[:n], data.features[n:], data.labels
    counts = np.zeros((model.n_clusters_, model.n_clusters_))
    np.add.at(counts, (model.labels_, classes[:n]), 1)
    of_cluster = linear_sum_assignment(-counts)[1]
    nearest = model.labels_[np.argmax(new @ known.T, axis=1)]
    assert np.mean(of_cluster[model.predict(new)] == classes[n:]) >= np.mean(
        of_cluster[nearest] == classes[n:]
    )
