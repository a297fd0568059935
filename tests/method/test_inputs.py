from __future__ import annotations

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.errors import ParameterError
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

FEATURES = np.random.default_rng(0).normal(1, 0.5, size=(60, 8))
NOUNS = np.random.default_rng(1).normal(1, 0.5, size=(10, 8))


def spoiled(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array[3, 2] = value
    return array


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named(value):
    model = NTKSpectralClustering(3)
    with pytest.raises(ValueError, match="X contains"):
        model.fit(spoiled(FEATURES, value))
    with pytest.raises(ValueError, match=r"noun_features\[1\] contains"):
        model.fit(FEATURES, noun_features=[NOUNS, spoiled(NOUNS, value)])
    with pytest.raises(ValueError, match="semantic_features contains"):
        model.fit(FEATURES, noun_features=NOUNS, semantic_features=spoiled(FEATURES, value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noun_features": np.empty((0, 8))}, "`noun_features` is empty"),
        ({"noun_features": []}, "`noun_features` is empty"),
        ({"noun_features": [NOUNS, np.empty((0, 8))]}, r"`noun_features\[1\]` is empty"),
        ({"noun_features": NOUNS[:, :5]}, "5 columns, but the images' features have 8"),
        ({"noun_features": [NOUNS, NOUNS[:4]]}, r"different numbers of nouns: \[10, 4\]"),
        ({"noun_features": NOUNS * (np.arange(10) != 7)[:, None]}, r"rows of zeros \(7\)"),
        (
            {"noun_features": NOUNS, "nouns": ["cat"]},
            "`nouns` has 1 words, but",
        ),
        ({"nouns": ["cat"]}, "without `noun_features`"),
        (
            {"noun_features": NOUNS, "semantic_features": FEATURES[:9]},
            "`semantic_features` has 9 rows, but `X` has 60",
        ),
    ],
)
def test_arguments_that_do_not_fit_together(options, message):
    with pytest.raises(ParameterError, match=message):
        NTKSpectralClustering(3).fit(FEATURES, **options)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("tau", 0),
        ("tau", -0.04),
        ("tau", np.nan),
        ("tau", "warm"),
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("n_clusters", True),
        ("n_neighbors", 0),
        ("mu", 0),
        ("lam", -1),
        ("lam_scale", "relative"),
        ("neighbors", "both"),
        ("ensemble", "mean"),
        ("solver", "fast"),
        ("assign_labels", None),
        ("max_iter", 0),
        ("max_inner_iter", 1.5),
        ("tol", np.inf),
        ("max_memory", -1),
        ("affinity", "cosine"),
    ],
)
def test_parameters_out_of_range_are_named(parameter, value):
    with pytest.raises(ParameterError, match=f"`{parameter}` must be"):
        NTKSpectralClustering(**{parameter: value}).fit(FEATURES)


def test_one_image_is_too_few():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        NTKSpectralClustering(1).fit(FEATURES[:1])


def test_more_clusters_than_images():
    with pytest.raises(ParameterError, match="`n_clusters` is 8, but there are only 5 images"):
        NTKSpectralClustering(8).fit(FEATURES[:5])


def test_more_neighbors_than_images():
    with pytest.warns(
        UserWarning, match="60 neighbours were asked for, but there are only 60 images"
    ):
        NTKSpectralClustering(3, n_neighbors=60).fit(FEATURES)


@pytest.mark.parametrize("n_images", [2, 3])
def test_as_many_clusters_as_images(n_images):
    model = NTKSpectralClustering(n_images).fit(FEATURES[:n_images])
    assert sorted(model.labels_) == list(range(n_images))


@pytest.mark.parametrize("nouns", [None, NOUNS, [NOUNS, NOUNS[::-1]]])
def test_all_images_identical(nouns):
    same = np.repeat(FEATURES[:1], 50, axis=0)
    with pytest.warns(UserWarning, match="Only 1 of the 50 images differ"):
        model = NTKSpectralClustering(3).fit(same, noun_features=nouns)
    assert set(model.labels_) == {0}
    assert model.n_clusters_ == 1


def test_duplicates_stay_together():
    data = make_clip_like(120, 4, n_prompts=2, separation=0.4, random_state=0)
    copies = np.repeat(np.arange(120), 3)
    model = NTKSpectralClustering(4, random_state=0)
    labels = model.fit_predict(data.features[copies], noun_features=data.noun_features)
    assert np.all(labels.reshape(120, 3) == labels.reshape(120, 3)[:, :1])
    assert clustering_scores(data.labels[copies], labels).acc > 0.97


def test_rows_of_zeros_are_counted_and_join_the_largest_cluster():
    data = make_clip_like(200, 4, n_prompts=2, random_state=0)
    features = data.features.copy()
    features[[5, 17]] = 0
    with pytest.warns(UserWarning, match="all zero|no neighbour") as caught:
        model = NTKSpectralClustering(4).fit(features, noun_features=data.noun_features)
    messages = [str(warning.message) for warning in caught]
    assert "The features of 2 image(s) are all zero (rows 5, 17 of X)" in messages[0]
    assert "1 of 199 images have no neighbour" in messages[1]  # The two are copies.
    assert {warning.filename for warning in caught} == {__file__}
    np.testing.assert_array_equal(model.isolated_, [5, 17])
    np.testing.assert_array_equal(model.labels_[[5, 17]], 0)


@pytest.mark.filterwarnings("ignore:The images fall into")
def test_mutual_neighbors_leave_images_alone_and_say_so():
    data = make_clip_like(600, 5, n_prompts=2, random_state=0)
    model = NTKSpectralClustering(5, neighbors="mutual", n_neighbors=10, random_state=0)
    with pytest.warns(UserWarning, match="placed by looks alone"):
        model.fit(data.features, noun_features=data.noun_features)
    assert len(model.isolated_) > 20
    assert model.graph_[model.isolated_].nnz == 0
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert np.mean(model.predict(data.features) == model.labels_) > 0.95
    lonely = clustering_scores(data.labels[model.isolated_], model.labels_[model.isolated_])
    assert lonely.acc > 0.9
    assert clustering_scores(data.labels, model.labels_).acc > 0.9


def test_a_graph_in_too_many_pieces():
    """Three classes, one of them in pieces that know nothing of each other."""
    rng = np.random.default_rng(0)
    sizes = (80, 80, 3, 3)
    piece = np.repeat(np.arange(4), sizes)
    features = np.abs(rng.normal(1, 0.2, size=(166, 8)))
    features[np.arange(8) // 2 != piece[:, None]] = 0
    features[piece == 3] += 1e-3 * np.eye(8)[0]
    model = NTKSpectralClustering(2, n_neighbors=2, random_state=0)
    with pytest.warns(UserWarning, match="more than 2 groups that have nothing in common"):
        model.fit(features)
    assert clustering_scores(piece[:160], model.labels_[:160]).acc == 1


def test_images_that_have_nothing_in_common_are_compared_by_looks():
    model = NTKSpectralClustering(2, n_neighbors=3).fit(np.eye(5))
    assert model.n_clusters_ == 2
    assert len(model.isolated_) == 0


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ma.masked_array(FEATURES, mask=FEATURES > 1), "is a masked array"),
        (FEATURES.astype(str), "holds text, not numbers"),
        (FEATURES.astype(str).tolist(), "holds text, not numbers"),
    ],
)
def test_masked_arrays_and_text_are_refused(array, message):
    with pytest.raises(ParameterError, match=f"`X` {message}"):
        NTKSpectralClustering(3).fit(array)
    with pytest.raises(ParameterError, match=f"`semantic_features` {message}"):
        NTKSpectralClustering(3).fit(FEATURES, semantic_features=array)
    with pytest.raises(ParameterError, match=f"`noun_features` {message}"):
        NTKSpectralClustering(3).fit(FEATURES, noun_features=array)
