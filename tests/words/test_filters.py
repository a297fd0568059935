import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from nouncut.compute.rows import unit_rows
from nouncut.paper.synthetic import make_clip_like
from nouncut.words.filters import (
    count_centers,
    image_centers,
    mean_prompt_features,
    positive_nouns,
    select_nouns,
)


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def badness(s, noun, method):
    """The published criterion of a filter; smaller is better."""
    if method == "tac":
        return -s.max()
    square = (np.sum(s**2) + (1 - s.max()) ** 2 - s.max() ** 2) * np.sum(noun**2)
    return np.sqrt(max(square, 0))


def plain_selection(centers, nouns, method, n_per_center):
    """The filters one noun at a time, in float64."""
    centers, nouns = centers.astype(np.float64), nouns.astype(np.float64)
    tau = {"tac": 1.0, "gradnorm": 0.04}[method]
    ranked = [[] for _ in centers]
    for index, noun in enumerate(nouns):
        s = softmax(centers @ noun / tau)
        ranked[int(s.argmax())].append((badness(s, noun, method), index))
    return sorted(index for own in ranked for _, index in sorted(own)[:n_per_center])


def plain_filter(images, prompts, n_clusters, method, n_per_center, seed):
    """The whole filter as published, without blocks."""
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in prompts]
    nouns = sum(unit) / len(unit)
    nouns = nouns / np.linalg.norm(nouns, axis=1, keepdims=True)
    images = unit_rows(images)
    M = len(images)
    k = min(round(M / 300) if M / n_clusters >= 300 else 3 * n_clusters, M)
    labels = KMeans(k, n_init=1, random_state=seed).fit_predict(images)
    means = np.stack([images[labels == label].mean(axis=0) for label in range(k)])
    centers = means / np.linalg.norm(means, axis=1, keepdims=True)
    return plain_selection(centers, nouns, method, n_per_center)


def random_unit(n, d, seed):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


@pytest.mark.parametrize("method", ["tac", "gradnorm"])
@pytest.mark.parametrize(
    ("n_images", "n_clusters", "n_per_center"), [(200, 4, 5), (900, 2, 3), (7, 5, 1)]
)
def test_agrees_with_the_plain_filter(method, n_images, n_clusters, n_per_center):
    data = make_clip_like(n_images, n_clusters, n_nouns=150, n_prompts=3, dim=32, random_state=1)
    chosen = positive_nouns(
        data.features,
        data.noun_features,
        n_clusters,
        method=method,
        n_per_center=n_per_center,
        random_state=0,
    )
    expected = plain_filter(
        data.features, data.noun_features, n_clusters, method, n_per_center, seed=0
    )
    assert chosen.tolist() == expected
    assert chosen.dtype == np.intp
    assert 0 < len(chosen) < 150


@pytest.mark.parametrize("method", ["tac", "gradnorm"])
@pytest.mark.parametrize("seed", range(4))
def test_selection_agrees_with_the_plain_one(method, seed):
    centers, nouns = random_unit(12, 16, seed), random_unit(200, 16, 100 + seed)
    chosen = select_nouns(centers, nouns, method=method, n_per_center=4)
    assert chosen.tolist() == plain_selection(centers, nouns, method, 4)


def test_filters_differ():
    centers, nouns = random_unit(12, 16, 0), random_unit(200, 16, 1)
    tac, gradnorm = (select_nouns(centers, nouns, method=m) for m in ("tac", "gradnorm"))
    assert tac.tolist() != gradnorm.tolist()


@pytest.mark.parametrize("method", ["tac", "gradnorm"])
def test_selection_in_several_blocks_agrees_with_the_plain_one(method):
    # Five million cosines, of which four million are in memory at a time.
    centers, nouns = random_unit(1000, 16, 2), random_unit(5000, 16, 3)
    chosen = select_nouns(centers, nouns, method=method, n_per_center=2)
    assert chosen.tolist() == plain_selection(centers, nouns, method, 2)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from(["tac", "gradnorm"]),
    st.integers(0, 2**31),
)
def test_every_centre_keeps_its_best(n_centers, n_nouns, n_per_center, method, seed):
    centers, nouns = random_unit(n_centers, 5, seed), random_unit(n_nouns, 5, seed + 1)
    chosen = select_nouns(centers, nouns, method=method, n_per_center=n_per_center)
    assert (np.diff(chosen) > 0).all()
    tau = {"tac": 1.0, "gradnorm": 0.04}[method]
    s = np.stack([softmax(centers @ noun / tau) for noun in nouns.astype(np.float64)])
    rank = np.array([badness(p, n, method) for p, n in zip(s, nouns, strict=True)])
    for center in range(n_centers):
        own = np.flatnonzero(s.argmax(axis=1) == center)
        kept, left = np.intersect1d(own, chosen), np.setdiff1d(own, chosen)
        assert len(kept) == min(n_per_center, len(own))
        if len(left):
            assert rank[kept].max() <= rank[left].min() + 1e-6


@pytest.mark.parametrize("method", ["tac", "gradnorm"])
def test_of_equal_nouns_the_first_are_kept(method):
    nouns = np.eye(3)[[2, 0, 0, 1, 0, 0, 1]]
    chosen = select_nouns(np.eye(3), nouns, method=method, n_per_center=2)
    assert chosen.tolist() == [0, 1, 2, 3, 6]


def test_gradnorm_tells_very_sure_nouns_apart():
    # Both probabilities are 1 in float32; the second noun is still the surer one.
    nouns = unit_rows(np.array([[1.0, -0.8], [1.0, -1.0]]))
    assert select_nouns(np.eye(2), nouns, method="gradnorm", n_per_center=1).tolist() == [1]


def test_none_keeps_all():
    assert positive_nouns(np.eye(3), np.eye(3), 2, method="none").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("n_images", "n_clusters", "n_centers"),
    [
        (3000, 10, 10),
        (2999, 10, 30),
        (50_000, 10, 167),
        (13_000, 10, 43),
        (600, 1000, 600),
        (5, 2, 5),
        (1, 1, 1),
        (750, 1, 2),
    ],
)
def test_number_of_centers(n_images, n_clusters, n_centers):
    assert count_centers(n_images, n_clusters) == n_centers


def test_centers_are_unit_means_of_their_images():
    images = make_clip_like(300, 3, dim=16, n_nouns=5, random_state=0).features
    centers = image_centers(images, 6, random_state=3)
    labels = KMeans(6, n_init=1, random_state=3).fit_predict(images)
    for center, label in zip(centers, range(6), strict=True):
        mean = images[labels == label].mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(center, mean / np.linalg.norm(mean), atol=1e-6)


def test_copies_of_images_make_fewer_centers():
    assert len(image_centers(np.repeat(np.eye(3), 4, axis=0), 8, random_state=0)) == 3


def test_length_of_features_does_not_matter():
    data = make_clip_like(200, 4, n_nouns=60, n_prompts=2, dim=16, random_state=2)
    scales = np.random.default_rng(0).choice([0.25, 1.0, 8.0], size=(2, 60, 1))
    scaled = [s * p for s, p in zip(scales, data.noun_features, strict=True)]
    chosen = positive_nouns(data.features, data.noun_features, 4, random_state=0)
    assert positive_nouns(4 * data.features, scaled, 4, random_state=0).tolist() == chosen.tolist()
    stacked = np.stack(data.noun_features)
    again = positive_nouns(data.features.tolist(), stacked, 4, random_state=0)
    assert again.tolist() == chosen.tolist()


def test_same_seed_same_nouns():
    data = make_clip_like(200, 4, n_nouns=60, n_prompts=1, dim=16, random_state=2)
    runs = [positive_nouns(data.features, data.noun_features, 4, random_state=5) for _ in "ab"]
    assert runs[0].tolist() == runs[1].tolist()


def test_images_without_direction_are_passed_over():
    data = make_clip_like(200, 4, n_nouns=60, n_prompts=1, dim=16, random_state=2)
    padded = np.vstack([data.features, np.zeros((40, 16))])
    expected = positive_nouns(data.features, data.noun_features, 4, random_state=0)
    assert (
        positive_nouns(padded, data.noun_features, 4, random_state=0).tolist() == expected.tolist()
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_mean_over_prompts(dtype):
    # More nouns than the 4,096 of one block.
    prompts = np.random.default_rng(0).normal(size=(3, 5000, 8)).astype(dtype)
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in prompts.astype(np.float64)]
    mean = np.mean(unit, axis=0)
    found = mean_prompt_features(list(prompts))
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean, axis=1, keepdims=True), atol=1e-6)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(mean_prompt_features(prompts), found)


def test_unit_rows_are_not_copied():
    unit = unit_rows(np.random.default_rng(0).normal(size=(9, 700)).astype(np.float32))
    assert np.shares_memory(mean_prompt_features(unit), unit)
    for scale in (1.001, 0.0):
        others = unit.copy()
        others[4] *= np.float32(scale)
        found = mean_prompt_features(others)
        assert not np.shares_memory(found, others)
        np.testing.assert_allclose(found, unit_rows(others), atol=1e-6)
    others[4, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        mean_prompt_features(others)


def test_lists_of_numbers():
    assert mean_prompt_features([[0.0, 2.0]]).tolist() == [[0.0, 1.0]]
    assert mean_prompt_features([[[0.0, 2.0]], [[0.0, 1.0]]]).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("noun_features", "problem"),
    [
        ([], "`noun_features` is empty"),
        (np.empty((0, 4)), r"at least one noun; got \(0, 4\)"),
        (np.ones(4), r"must have the shape \(n_nouns, d\)"),
        ([np.ones((2, 4)), np.ones((3, 4))], r"different shapes: \[\(2, 4\), \(3, 4\)\]"),
        (np.full((2, 4), np.nan), "noun_features contains NaN"),
        (np.ones((2, 5)), "`noun_features` has 5 columns, but `image_features` has 4"),
    ],
)
def test_bad_noun_features(noun_features, problem):
    with pytest.raises(ValueError, match=problem):
        positive_nouns(np.eye(4), noun_features, 2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"method": "best"}, "`method` must be one of 'tac', 'gradnorm', 'none'; got 'best'"),
        ({"n_clusters": 0}, "`n_clusters` must be a whole number of at least 1; got 0"),
        ({"n_per_center": 1.5}, "`n_per_center` must be a whole number of at least 1; got 1.5"),
        ({"image_features": np.zeros((3, 4))}, "`image_features` has only zero rows"),
        ({"image_features": np.full((3, 4), np.inf)}, "image_features contains infinity"),
    ],
)
def test_bad_arguments(arguments, problem):
    good = {"image_features": np.eye(4), "noun_features": np.eye(4), "n_clusters": 2}
    with pytest.raises(ValueError, match=problem):
        positive_nouns(**good | arguments)
