"""Features of several encoders for the same images."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError
from nouncut.paper.synthetic import make_clip_like


@pytest.fixture(scope="module")
def data():
    return make_clip_like(n_images=200, n_clusters=4, random_state=0)


@pytest.fixture(scope="module")
def other(data):
    """Features of an encoder that is blind to every second dimension, in another unit."""
    return 100 * data.features[:, ::2]


def test_cosines_are_averaged(data, other):
    cosines = [unit_rows(part) @ unit_rows(part).T for part in (data.features, other)]
    graph = NTKSpectralClustering(4, n_neighbors=10, random_state=0)
    found = graph.fit([data.features, other])
    nearest = np.argsort(-np.mean(cosines, axis=0), axis=1)[:, 1:4]
    rows = np.repeat(np.arange(200), 3)
    assert (found.graph_[rows, nearest.ravel()] > 0).all()


def test_one_array_in_a_list_is_the_array(data):
    alone = NTKSpectralClustering(4, random_state=0).fit_predict(data.features)
    np.testing.assert_array_equal(
        NTKSpectralClustering(4, random_state=0).fit_predict([data.features]), alone
    )


def test_new_images_need_the_same_arrays(data, other):
    model = NTKSpectralClustering(4, random_state=0)
    model.fit(
        [data.features, other],
        noun_features=data.noun_features,
        semantic_features=data.features,
    )
    labels = model.predict([data.features[:50], other[:50]], data.features[:50])
    np.testing.assert_array_equal(labels, model.labels_[:50])
    with pytest.raises(ValueError, match="features"):
        model.predict(data.features, data.features)


def test_nouns_need_features_in_their_space(data, other):
    with pytest.raises(ParameterError, match="semantic_features"):
        NTKSpectralClustering(4).fit([data.features, other], noun_features=data.noun_features)


def test_arrays_of_different_images_are_refused(data, other):
    with pytest.raises(ParameterError, match="200, 199 rows"):
        NTKSpectralClustering(4).fit([data.features, other[:-1]])


def test_lists_of_rows_are_still_one_array(data):
    rows = data.features[:40].tolist()
    alone = NTKSpectralClustering(4, random_state=0).fit_predict(data.features[:40])
    np.testing.assert_array_equal(NTKSpectralClustering(4, random_state=0).fit_predict(rows), alone)
