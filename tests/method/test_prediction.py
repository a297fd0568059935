"""Placing images after the fit, with the fitted estimator or with one restored from arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from nouncut import NTKSpectralClustering
from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.estimator import MODEL_ARRAYS
from nouncut.method.placement import extend_embedding
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

NEWER_THAN_0_1_0 = ("model_mean_degrees", "model_n_neighbors", "model_shifted")


@pytest.fixture(scope="module")
def data():
    return make_clip_like(150, 4, n_prompts=2, n_nouns=30, separation=0.5, random_state=0)


def restored(model, visual, semantic, tmp_path, leave_out=()):
    """Return the estimator after its arrays have been on a disk."""
    for name, array in model.to_arrays().items():
        assert name in MODEL_ARRAYS
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in tmp_path.glob("model_*.npy")}
    arrays = {name: array for name, array in arrays.items() if name not in leave_out}
    return NTKSpectralClustering.from_arrays(
        arrays, visual, semantic, model.embedding_, model.labels_, n_jobs=2
    )


@pytest.mark.parametrize("solver", ["exact", "spectral"])
@pytest.mark.parametrize("kind", ["looks alone", "nouns", "semantic features"])
def test_a_restored_estimator_places_new_images_exactly_as_before(data, tmp_path, kind, solver):
    rng = np.random.default_rng(1)
    visual = data.features
    semantic = None if kind == "looks alone" else data.features
    if kind == "semantic features":
        visual = data.features @ np.linalg.qr(rng.normal(size=(data.features.shape[1],) * 2))[0]
        visual = visual.astype(np.float32)
    model = NTKSpectralClustering(4, n_neighbors=12, solver=solver, random_state=0)
    nouns = None if semantic is None else data.noun_features
    model.fit(visual, semantic_features=semantic, noun_features=nouns)
    again = restored(model, visual, semantic, tmp_path)
    noise = rng.normal(0, 0.02, visual.shape).astype(np.float32)
    for queries in (visual, visual + noise):
        said = None if semantic is None else semantic + (queries - visual)
        assert_array_equal(again.transform(queries, said), model.transform(queries, said))
        assert_array_equal(again.predict(queries, said), model.predict(queries, said))
        assert_array_equal(again.predict_proba(queries, said), model.predict_proba(queries, said))


def test_excluded_images_do_not_shift_the_others(data, tmp_path):
    visual = np.vstack([data.features, -data.features[:1], np.zeros_like(data.features[:1])])
    with pytest.warns(UserWarning, match="neighbour|zero"):
        model = NTKSpectralClustering(4, n_neighbors=12, random_state=0).fit(visual)
    again = restored(model, visual, None, tmp_path)
    assert_array_equal(again.transform(data.features), model.transform(data.features))
    assert_array_equal(again.predict(data.features), model.predict(data.features))


@pytest.mark.parametrize("ensemble", ["diffusion", "weighted"])
def test_arrays_of_version_0_1_0_are_enough(data, tmp_path, ensemble):
    """They differ in the number of neighbours, and in the second normalisation if there was one."""
    model = NTKSpectralClustering(4, ensemble=ensemble, random_state=0)
    model.fit(data.features[:120], noun_features=data.noun_features)
    again = restored(model, data.features[:120], None, tmp_path, NEWER_THAN_0_1_0)
    assert_array_equal(again.predict(data.features[:120]), model.labels_)
    labels = again.predict(data.features)
    assert clustering_scores(data.labels, labels).acc > 0.97


def test_an_image_lies_in_the_mean_direction_of_its_neighbours():
    vectors = np.array([[0.6, 0.8], [0.8, -0.6]])
    np.testing.assert_allclose(
        extend_embedding(csr_array(np.array([[3.0, 0.0], [1.0, 1.0]])), vectors),
        [[0.6, 0.8], np.array([1.4, 0.2]) / np.sqrt(2)],
    )


def test_an_image_without_edges_has_no_direction(random_graphs):
    (graph,) = random_graphs(20, 1, seed=0)
    nothing = graph[:1] * 0
    assert not extend_embedding(nothing, top_eigenpairs(graph, 2).vectors).any()
