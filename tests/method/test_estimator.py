from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from nouncut import NTKSpectralClustering
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like


@pytest.mark.filterwarnings("ignore:The features of", "ignore:Only .* images differ")
@pytest.mark.filterwarnings("ignore:.* have no neighbour", "ignore:The images fall into")
@parametrize_with_checks(
    [NTKSpectralClustering()],
    expected_failed_checks=lambda _: {
        f"check_estimator_sparse_{kind}": "asks a clusterer's probabilities for classes"
        for kind in ("array", "matrix")
    },
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ensemble", ["diffusion", "average", "prompt_mean"])
@pytest.mark.parametrize("solver", ["exact", "spectral"])
@pytest.mark.parametrize("assign_labels", ["discretize", "cluster_qr", "kmeans"])
def test_every_combination_finds_the_classes(small_data, ensemble, solver, assign_labels):
    model = NTKSpectralClustering(
        5, ensemble=ensemble, solver=solver, assign_labels=assign_labels, random_state=0
    )
    model.fit(small_data.features, noun_features=small_data.noun_features)
    assert clustering_scores(small_data.labels, model.labels_).acc > 0.97
    assert model.solver_ == (solver if ensemble == "diffusion" else None)
    assert model.prompt_weights_.shape == (3,)
    assert model.prompt_weights_.sum() == pytest.approx(1)


def test_fitted_attributes(small_data):
    model = NTKSpectralClustering(5, solver="spectral", tau="auto", random_state=0)
    nouns = [f"noun {i}" for i in range(80)]
    model.fit(small_data.features, noun_features=small_data.noun_features, nouns=nouns)
    assert model.labels_.shape == (400,)
    assert model.n_clusters_ == 5
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert model.embedding_.shape == (400, 5)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1)
    assert model.eigenvalues_.shape == (5,)
    # Sixteen more than pieces of the finer cut, in descending order; five stand out.
    assert model.spectrum_.shape == (31,)
    assert np.all(np.diff(model.spectrum_) <= 1e-12)
    assert model.spectrum_[4] > model.spectrum_[5] + 0.05
    assert np.all((model.eigenvalues_ > 0.5) & (model.eigenvalues_ <= 1 + 1e-9))
    assert isinstance(model.graph_, csr_array)
    assert abs(model.graph_ - model.graph_.T).max() < 1e-15
    assert model.n_iter_ == len(model.objective_) >= 1
    assert len(model.isolated_) == 0
    assert 0.03 < model.tau_ < 0.06
    assert model.nouns_ == nouns


def test_without_nouns_images_are_compared_by_appearance(small_data):
    model = NTKSpectralClustering(5, random_state=0).fit(small_data.features)
    assert clustering_scores(small_data.labels, model.labels_).acc > 0.9
    assert model.tau_ is None
    assert model.solver_ is None
    np.testing.assert_array_equal(model.prompt_weights_, [1])


def test_nouns_help_where_appearance_misleads():
    """Two kinds of things in two kinds of light: the nouns know the things only."""
    rng = np.random.default_rng(0)
    things, lights = rng.integers(0, 2, size=(2, 300))
    spread = rng.normal(size=(300, 20)) * 0.3
    visual = np.eye(20)[things] + 1.5 * np.eye(20)[2 + lights] + spread
    semantic = np.eye(20)[things] + spread
    nouns = np.eye(20)[:2]
    by_looks = NTKSpectralClustering(2, random_state=0).fit(visual)
    by_nouns = NTKSpectralClustering(2, tau=0.1, random_state=0).fit(
        visual, noun_features=nouns, semantic_features=semantic
    )
    assert clustering_scores(lights, by_looks.labels_).acc > 0.95
    assert clustering_scores(things, by_nouns.labels_).acc > 0.95


def test_one_array_is_one_prompt(small_data):
    options = {"n_clusters": 5, "random_state": 0}
    array = small_data.noun_features[0]
    alone = NTKSpectralClustering(**options).fit(small_data.features, noun_features=array)
    listed = NTKSpectralClustering(**options).fit(small_data.features, noun_features=[array])
    np.testing.assert_array_equal(alone.labels_, listed.labels_)
    np.testing.assert_array_equal(alone.prompt_weights_, [1])
    stacked = NTKSpectralClustering(**options).fit(
        small_data.features, noun_features=np.stack(small_data.noun_features)
    )
    assert stacked.prompt_weights_.shape == (3,)


@pytest.mark.parametrize("solver", ["exact", "spectral"])
def test_a_block_diagonal_truth_is_recovered_exactly(solver):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(6), 60))
    features = np.abs(rng.normal(1, 0.3, size=(360, 30)))
    features[np.arange(30) // 5 != truth[:, None]] = 0
    prompts = [np.eye(30)[b::2] for b in range(2)]
    model = NTKSpectralClustering(6, solver=solver, random_state=0)
    model.fit(features, noun_features=prompts)
    assert adjusted_rand_score(truth, model.labels_) == 1


@pytest.mark.parametrize("solver", ["exact", "spectral"])
def test_permuting_images_permutes_labels(small_data, solver):
    order = np.random.default_rng(0).permutation(400)
    model = NTKSpectralClustering(5, solver=solver, random_state=0)
    labels = model.fit_predict(small_data.features, noun_features=small_data.noun_features)
    permuted = model.fit_predict(small_data.features[order], noun_features=small_data.noun_features)
    # Another order means other random probes of the spectral solver: an image between two
    # clusters may change sides.
    assert adjusted_rand_score(permuted, labels[order]) >= (1 if solver == "exact" else 0.98)


@pytest.fixture(scope="module")
def hard_data():
    return make_clip_like(600, 8, n_prompts=3, separation=0.18, random_state=0)


@pytest.fixture(scope="module")
def hard_labels(hard_data):
    model = NTKSpectralClustering(8, random_state=0)
    return model.fit_predict(hard_data.features, noun_features=hard_data.noun_features)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_labels_do_not_depend_on_threads(hard_data, hard_labels, n_jobs):
    model = NTKSpectralClustering(8, random_state=0, n_jobs=n_jobs)
    labels = model.fit_predict(hard_data.features, noun_features=hard_data.noun_features)
    np.testing.assert_array_equal(labels, hard_labels)


@pytest.mark.parametrize("scale", [1e-8, 0.37, 1e8])
def test_scaling_features_changes_nothing(hard_data, hard_labels, scale):
    lengths = scale * np.random.default_rng(0).uniform(0.5, 2, size=(600, 1))
    model = NTKSpectralClustering(8, random_state=0)
    labels = model.fit_predict(
        hard_data.features * lengths, noun_features=[scale * w for w in hard_data.noun_features]
    )
    assert adjusted_rand_score(labels, hard_labels) > 0.995


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_labels_do_not_depend_on_the_floating_type(hard_data, hard_labels, dtype):
    model = NTKSpectralClustering(8, random_state=0)
    labels = model.fit_predict(
        hard_data.features.astype(dtype),
        noun_features=[nouns.astype(dtype) for nouns in hard_data.noun_features],
    )
    assert adjusted_rand_score(labels, hard_labels) > (0.97 if dtype == np.float16 else 0.999)


def test_sparse_features_give_the_same_labels(small_data):
    features = np.where(small_data.features > 0.02, small_data.features, 0)
    model = NTKSpectralClustering(5, random_state=0)
    expected = model.fit_predict(features, noun_features=small_data.noun_features)
    labels = model.fit_predict(csr_array(features), noun_features=small_data.noun_features)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("ensemble", ["diffusion", "average", "prompt_mean"])
def test_new_images_join_the_right_clusters(ensemble):
    data = make_clip_like(900, 6, n_prompts=2, separation=0.4, random_state=0)
    model = NTKSpectralClustering(6, ensemble=ensemble, random_state=0)
    model.fit(data.features[:600], noun_features=data.noun_features)
    assert np.mean(model.predict(data.features[:600]) == model.labels_) > 0.97
    labels = np.concatenate([model.labels_, model.predict(data.features[600:])])
    fitted_accuracy = clustering_scores(data.labels[:600], model.labels_).acc
    assert clustering_scores(data.labels, labels).acc > fitted_accuracy - 0.01


def test_predict_takes_semantic_features_exactly_if_fit_did(small_data):
    features, nouns = small_data.features, small_data.noun_features
    model = NTKSpectralClustering(5, random_state=0).fit(features, noun_features=nouns)
    with pytest.raises(ValueError, match="if and only if `fit` had them"):
        model.predict(features, semantic_features=features)
    model.fit(features[:, :100], noun_features=nouns, semantic_features=features)
    with pytest.raises(ValueError, match="if and only if `fit` had them"):
        model.predict(features[:, :100])
    with pytest.raises(ValueError, match="fitted with 512"):
        model.predict(features[:, :100], semantic_features=features[:, :50])
    labels = model.predict(features[:, :100], semantic_features=features)
    assert np.mean(labels == model.labels_) > 0.97


def test_pickles_and_clones(small_data):
    model = NTKSpectralClustering(5, tau="auto", random_state=0)
    model.fit(small_data.features, noun_features=small_data.noun_features)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict(small_data.features), model.predict(small_data.features)
    )
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "labels_")


def test_lam_can_grow_with_the_images(small_data):
    fits = {
        scale: NTKSpectralClustering(
            5, lam=1.0, lam_scale=scale, solver="spectral", random_state=0
        ).fit(small_data.features, noun_features=small_data.noun_features)
        for scale in ("absolute", "per_image")
    }
    # 400 images are 1/25 of the reference size: a smaller lambda, less even weights.
    spread = {scale: np.ptp(fit.prompt_weights_) for scale, fit in fits.items()}
    assert spread["per_image"] > 5 * spread["absolute"]


def test_the_weights_of_every_step_end_with_the_final_ones(small_data):
    model = NTKSpectralClustering(5, solver="spectral", random_state=0)
    model.fit(small_data.features, noun_features=small_data.noun_features)
    assert model.weight_steps_.shape == (model.n_iter_, 3)
    np.testing.assert_array_equal(model.weight_steps_[-1], model.prompt_weights_)


def test_auto_searches_for_neighbours_once(small_data):
    stages = []
    model = NTKSpectralClustering("auto", random_state=0)
    model.fit(
        small_data.features,
        noun_features=small_data.noun_features,
        progress=lambda stage, done, total: stages.append(stage) if done == total else None,
    )
    assert model.n_clusters_ == 5
    assert stages.count("finding neighbours") == 1
    assert stages[-1] == "assigning labels"
