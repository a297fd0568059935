from __future__ import annotations

import numpy as np

from nouncut.paper.synthetic import make_clip_like


def test_cosines_lie_where_clips_do():
    data = make_clip_like(800, 8, random_state=0)
    same = data.labels[:, None] == data.labels
    np.fill_diagonal(same, False)
    cosines = data.features @ data.features.T
    assert 0.55 < cosines[~same].mean() < 0.65
    assert 0.68 < cosines[same].mean() < 0.8
    for nouns in data.noun_features:
        low, high = np.percentile(data.features @ nouns.T, [2, 98])
        assert 0.12 < low < high < 0.35


def test_seed_decides_everything():
    one, two, other = (make_clip_like(60, 3, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.features, two.features)
    assert not np.array_equal(one.features, other.features)
