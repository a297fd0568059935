"""Labels of an earlier fit stay, unless another cut is clearly better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from nouncut import NTKSpectralClustering
from nouncut.errors import ParameterError
from nouncut.paper.synthetic import make_clip_like

# Classes that overlap: a cut of other images, or in another order, differs a little.
DATA = make_clip_like(400, 12, separation=0.25, random_state=3)


def fit(features, earlier=None, k=12):
    model = NTKSpectralClustering(k, random_state=0)
    return model.fit(features, earlier_labels=earlier).labels_


FIRST = fit(DATA.features)


def agreement(part, labels):
    return adjusted_rand_score(FIRST[part], labels)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000))
def test_labels_stay_when_a_few_images_go_and_the_others_change_places(seed):
    part = np.random.default_rng(seed).permutation(400)[:390]
    stayed = fit(DATA.features[part], FIRST[part])
    assert agreement(part, stayed) > 0.9
    assert agreement(part, stayed) >= agreement(part, fit(DATA.features[part]))


def test_without_them_the_same_change_moves_more_images():
    parts = [np.random.default_rng(seed).permutation(400)[:390] for seed in range(4)]
    alone = np.mean([agreement(part, fit(DATA.features[part])) for part in parts])
    assert alone < 0.95


def test_new_images_join_the_clusters_that_are_there():
    known = np.where(np.arange(400) % 50 == 0, -1, FIRST)
    stayed = fit(DATA.features, known)
    assert adjusted_rand_score(FIRST, stayed) > 0.97
    assert set(stayed) == set(range(12))


def test_a_clearly_better_cut_wins():
    shuffled = np.random.default_rng(0).permutation(FIRST)
    assert np.array_equal(fit(DATA.features, shuffled), FIRST)


def test_labels_of_another_number_of_clusters_do_not_count():
    assert np.array_equal(fit(DATA.features, FIRST, k=8), fit(DATA.features, k=8))


def test_copies_share_their_label():
    twice = np.concatenate([DATA.features, DATA.features])
    labels = fit(twice, np.concatenate([FIRST, FIRST]))
    assert np.array_equal(labels[:400], labels[400:])
    assert agreement(np.arange(400), labels[:400]) > 0.97


@pytest.mark.parametrize("wrong", [[0, 1], np.zeros(400), np.zeros((400, 1), int)])
def test_other_shapes_and_types_are_an_error(wrong):
    with pytest.raises(ParameterError, match="400 whole numbers"):
        fit(DATA.features, wrong)
