"""The estimator as scikit-learn users expect it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nouncut import NTKSpectralClustering
from nouncut.errors import ParameterError
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like


@pytest.fixture(scope="module")
def data():
    return make_clip_like(240, 4, n_prompts=2, random_state=0)


def test_auto_finds_the_number_and_tells_the_candidates(data):
    model = NTKSpectralClustering("auto", random_state=0)
    model.fit(data.features, noun_features=data.noun_features)
    assert model.n_clusters_ == 4 == model.cluster_count_.n_clusters
    assert model.cluster_count_.candidates[0][0] == 4
    assert clustering_scores(data.labels, model.labels_).acc > 0.97
    assert NTKSpectralClustering(4).fit(data.features).cluster_count_ is None


def test_transform_gives_the_embedding(data):
    model = NTKSpectralClustering(4, random_state=0)
    embedding = model.fit_transform(data.features, noun_features=data.noun_features)
    assert embedding is model.embedding_
    np.testing.assert_array_equal(model.transform(data.features), embedding)
    new = make_clip_like(10, 4, n_prompts=2, random_state=0).features
    np.testing.assert_allclose(np.linalg.norm(model.transform(new), axis=1), 1)
    assert list(model.get_feature_names_out())[:1] == ["ntkspectralclustering0"]


def test_probabilities_are_the_membership(data):
    model = NTKSpectralClustering(4, random_state=0).fit(data.features)
    probabilities = model.predict_proba(data.features)
    assert probabilities.shape == (240, 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(probabilities.argmax(axis=1) == model.labels_) > 0.97


def test_it_works_in_a_pipeline(data):
    steps = make_pipeline(StandardScaler(), NTKSpectralClustering(4, random_state=0))
    assert clustering_scores(data.labels, steps.fit_predict(data.features)).acc > 0.95


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_ready_graph_is_cut(data, container):
    kernel = data.features @ data.features.T
    graph = np.where(kernel >= np.sort(kernel, axis=1)[:, -15:-14], kernel, 0)
    graph = np.maximum(graph, graph.T)
    model = NTKSpectralClustering(4, affinity="precomputed", random_state=0)
    labels = model.fit_predict(container(graph))
    assert clustering_scores(data.labels, labels).acc > 0.97
    assert np.mean(model.predict(container(graph[:50])) == labels[:50]) > 0.97
    assert NTKSpectralClustering("auto", affinity="precomputed").fit(graph).n_clusters_ == 4


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((3, 2)), "must be square"),
        (np.array([[0, -1.0], [-1.0, 0]]), "negative weights"),
        (np.array([[0, 1.0], [0, 0]]), "not symmetric"),
    ],
)
def test_a_graph_that_is_none_is_refused(graph, message):
    with pytest.raises(ParameterError, match=message):
        NTKSpectralClustering(2, affinity="precomputed").fit(graph)


def test_nouns_have_no_place_beside_a_ready_graph(data):
    with pytest.raises(ParameterError, match="precomputed"):
        NTKSpectralClustering(2, affinity="precomputed").fit(
            np.ones((3, 3)), noun_features=data.noun_features
        )


def test_a_graph_in_pieces_is_cut_into_any_number():
    graph = np.kron(np.eye(6), 1 - np.eye(2))
    for n_clusters in (6, 12):
        model = NTKSpectralClustering(n_clusters, affinity="precomputed", random_state=0)
        assert model.fit(graph).n_clusters_ == n_clusters
    with pytest.warns(UserWarning, match="more than 3 groups"):
        model = NTKSpectralClustering(3, affinity="precomputed", random_state=0).fit(graph)
    assert model.n_clusters_ == 3
