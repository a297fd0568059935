"""A fitted estimator as arrays and back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nouncut import NTKSpectralClustering
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.fitted import MODEL_ARRAYS, fitted_arrays, restore_model


@pytest.fixture(scope="module")
def data():
    return make_clip_like(150, 4, n_prompts=2, n_nouns=30, separation=0.5, random_state=0)


def restored(model, visual, semantic, tmp_path):
    """Return the estimator after its arrays have been on a disk."""
    for name, array in fitted_arrays(model).items():
        assert name in MODEL_ARRAYS
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in tmp_path.glob("model_*.npy")}
    return restore_model(arrays, visual, semantic, model.embedding_, model.labels_)


@pytest.mark.parametrize("solver", ["exact", "spectral"])
@pytest.mark.parametrize("kind", ["looks alone", "nouns", "semantic features"])
def test_new_images_are_placed_exactly_as_before(data, tmp_path, kind, solver):
    rng = np.random.default_rng(1)
    visual = data.features
    semantic = None if kind == "looks alone" else data.features
    if kind == "semantic features":
        visual = data.features @ np.linalg.qr(rng.normal(size=(data.features.shape[1],) * 2))[0]
        visual = visual.astype(np.float32)
    model = NTKSpectralClustering(4, n_neighbors=12, solver=solver, random_state=0)
    if semantic is None:
        model.fit(visual)
    else:
        model.fit(visual, semantic_features=semantic, noun_features=data.noun_features)
    again = restored(model, visual, semantic, tmp_path)
    noise = rng.normal(0, 0.02, visual.shape).astype(np.float32)
    for queries in (visual, visual + noise):
        said = None if semantic is None else semantic + (queries - visual)
        assert_array_equal(again.transform(queries, said), model.transform(queries, said))
        assert_array_equal(
            again.predict(queries, semantic_features=said),
            model.predict(queries, semantic_features=said),
        )


def test_strays_do_not_shift_the_others(data, tmp_path):
    visual = np.vstack([data.features, -data.features[:1], np.zeros_like(data.features[:1])])
    with pytest.warns(UserWarning, match="neighbour|zero|isolated"):
        model = NTKSpectralClustering(4, n_neighbors=12, random_state=0).fit(visual)
    again = restored(model, visual, None, tmp_path)
    assert_array_equal(again.transform(data.features), model.transform(data.features))
    assert_array_equal(again.predict(data.features), model.predict(data.features))
