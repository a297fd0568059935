"""Two, three, five, ten and twenty images; and copies of images."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.method.graphs import choose_neighbors
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

SIZES = [2, 3, 5, 10, 20]


def centred(n_images, random_state=0):
    """Return features as the embedded model has them: centred, so that most images repel."""
    data = make_clip_like(n_images, max(1, n_images // 5), n_prompts=2, random_state=random_state)
    return data.features - data.features.mean(axis=0), data


@pytest.mark.parametrize("with_nouns", [False, True])
@pytest.mark.parametrize("n_images", SIZES)
def test_every_number_of_clusters_that_is_possible(n_images, with_nouns):
    visual, data = centred(n_images)
    for n_clusters in range(1, n_images + 1):
        model = NTKSpectralClustering(n_clusters, random_state=0).fit(
            visual,
            noun_features=data.noun_features if with_nouns else None,
            semantic_features=data.features if with_nouns else None,
        )
        assert set(model.labels_) == set(range(n_clusters))


@pytest.mark.parametrize("n_images", SIZES)
def test_auto_always_has_an_answer(n_images):
    visual, _ = centred(n_images)
    model = NTKSpectralClustering("auto", random_state=0).fit(visual)
    assert 1 <= model.n_clusters_ <= max(1, n_images // 5)


def test_the_alike_pair_stays_together():
    images = np.array([[1.0, 0.02, 0], [1.0, 0, 0.02], [0, -1.0, 0], [-1.0, 0, 0], [0, 0, -1.0]])
    labels = NTKSpectralClustering(4, random_state=0).fit_predict(images)
    assert labels[0] == labels[1]
    assert len(set(labels)) == 4


@pytest.mark.parametrize(
    ("n_images", "n_clusters", "expected"),
    [(10, 10, 2), (50, 10, 4), (600, 24, 10), (2250, 10, 30), (10**6, 10, 30), (600, None, 12)],
)
def test_neighbours_follow_the_images_per_cluster(n_images, n_clusters, expected):
    assert choose_neighbors(n_images, n_clusters) == expected


def test_the_number_of_neighbours_is_told():
    data = make_clip_like(200, 4, random_state=0)
    assert NTKSpectralClustering(4).fit(data.features).n_neighbors_ == choose_neighbors(200, 4)
    assert NTKSpectralClustering(4, n_neighbors=7).fit(data.features).n_neighbors_ == 7


@pytest.mark.parametrize("n_copies", [2, 12, 40])
def test_copies_change_nothing(n_copies):
    data = make_clip_like(120, 4, n_prompts=2, separation=0.4, random_state=0)
    alone = NTKSpectralClustering(4, random_state=0).fit(
        data.features, noun_features=data.noun_features
    )
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(120), n_copies))
    model = NTKSpectralClustering(4, random_state=0).fit(
        data.features[order], noun_features=data.noun_features
    )
    assert clustering_scores(alone.labels_[order], model.labels_).acc == 1
    for original in range(120):
        own = np.flatnonzero(order == original)
        assert set(model.originals_[own]) == {own[0]}
        np.testing.assert_array_equal(
            model.embedding_[own], model.embedding_[own[:1]].repeat(n_copies, axis=0)
        )
    assert model.graph_.shape == (len(order), len(order))
    assert len(model.isolated_) == 0
    np.testing.assert_array_equal(model.predict(data.features[order]), model.labels_)


def test_a_thousand_copies_of_one_image_do_not_become_a_cluster():
    data = make_clip_like(120, 4, n_prompts=2, separation=0.4, random_state=0)
    order = np.concatenate([np.arange(120), np.full(1000, 7)])
    model = NTKSpectralClustering(4, random_state=0).fit(data.features[order])
    assert clustering_scores(data.labels, model.labels_[:120]).acc > 0.97
    assert set(model.labels_[120:]) == {model.labels_[7]} == {0}  # The largest, with its copies.
