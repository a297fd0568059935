"""Trust in nouns: full where they know, none where they contradict stable looks."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError
from nouncut.method.kernel import Kernel, noun_probabilities, ntk_kernel
from nouncut.method.trust import noun_trust
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

TAU = 0.04


@pytest.fixture(scope="module")
def data():
    return make_clip_like(600, 8, separation=0.35, random_state=0)


def shuffled(features):
    """Return the meanings of other images: nouns say nothing about these."""
    return features[np.random.default_rng(0).permutation(len(features))]


def fit(data, **options):
    model = NTKSpectralClustering(8, random_state=0, semantic_weight=options.pop("weight"))
    return model.fit(data.features, noun_features=data.noun_features, **options)


def test_nouns_that_know_have_full_weight(data):
    model = fit(data, weight="auto")
    assert model.semantic_weight_ == 1
    assert (model.labels_ == fit(data, weight=1).labels_).all()


def test_nouns_that_contradict_stable_looks_have_none(data):
    wrong = shuffled(data.features)
    model = fit(data, weight="auto", semantic_features=wrong)
    assert model.semantic_weight_ == 0
    assert model.noun_trust_.agreement < 0.05
    by_looks = NTKSpectralClustering(8, random_state=0).fit_predict(data.features)
    assert clustering_scores(by_looks, model.labels_).ari > 0.99
    misled = fit(data, weight=1, semantic_features=wrong).labels_
    assert clustering_scores(data.labels, misled).ari < 0.8


def test_looks_without_clusters_do_not_judge_nouns():
    """Classes that hardly show in looks, and clearly in what nouns say of them."""
    data = make_clip_like(1000, 10, separation=0.15, random_state=0)
    kernel = Kernel(data.features, data.features, data.noun_features, TAU)
    trust = noun_trust(kernel, 10, random_state=0)
    assert trust.looks_stability < trust.meaning_stability / 2
    assert trust.weight > 0.5


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_weight_mixes_the_kernel_with_looks(data, weight):
    features, nouns = data.features[:20], data.noun_features[:1]
    mixed = noun_probabilities(features, nouns, TAU, weight=weight)[0]
    full = noun_probabilities(features, nouns, TAU)[0]
    np.testing.assert_allclose(mixed.sum(axis=1), 1, rtol=1e-5)
    by_looks = features @ features.T / len(nouns[0]) / TAU**2
    expected = weight * ntk_kernel(features, full, tau=TAU) + (1 - weight) * by_looks
    np.testing.assert_allclose(ntk_kernel(features, mixed, tau=TAU), expected, rtol=1e-3, atol=1e-4)


def test_predictions_use_the_weight(data):
    train, new = slice(0, 500), slice(500, None)
    meaning = unit_rows(data.features + 0.02 * shuffled(data.features))
    model = NTKSpectralClustering(8, random_state=0, semantic_weight=0.5)
    model.fit(
        data.features[train], noun_features=data.noun_features, semantic_features=meaning[train]
    )
    arrays = model.to_arrays()
    assert arrays["model_semantic_weight"] == 0.5
    again = NTKSpectralClustering.from_arrays(
        arrays, data.features[train], meaning[train], model.embedding_, model.labels_
    )
    found = again.predict(data.features[new], meaning[new])
    np.testing.assert_array_equal(found, model.predict(data.features[new], meaning[new]))
    assert clustering_scores(data.labels[new], found).acc > 0.9


@pytest.mark.parametrize("n_images", [2, 5, 19, 20])
def test_few_images_are_no_reason_to_doubt(n_images):
    data = make_clip_like(20, 2, random_state=0)
    X = data.features[:n_images]
    trust = noun_trust(Kernel(X, X, data.noun_features, TAU), 2, random_state=0)
    assert 0 <= trust.weight <= 1
    assert trust.weight == 1 or n_images == 20


@pytest.mark.parametrize("weight", [-0.1, 1.1, "some", None, True])
def test_wrong_weights_are_refused(data, weight):
    with pytest.raises(ParameterError, match="`semantic_weight`"):
        fit(data, weight=weight)


def test_trust_does_not_depend_on_threads(data):
    kernel = Kernel(data.features, shuffled(data.features), data.noun_features, TAU)
    assert noun_trust(kernel, 8, random_state=0) == noun_trust(
        kernel, 8, random_state=0, n_threads=2
    )
