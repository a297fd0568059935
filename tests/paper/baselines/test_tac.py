from __future__ import annotations

import numpy as np
import pytest

from nouncut.paper.baselines.tac import tac_features, text_counterparts


def slow_counterpart(image: np.ndarray, nouns: np.ndarray, tau: float) -> np.ndarray:
    cosines = [float(image @ noun) for noun in nouns]
    weights = [np.exp((cosine - max(cosines)) / tau) for cosine in cosines]
    mean = sum(weight / sum(weights) * noun for weight, noun in zip(weights, nouns, strict=True))
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("tau", [0.005, 0.5])
def test_counterparts_follow_the_formula(data, tau):
    nouns = data.noun_features[0].astype(float)
    images = data.features[:10].astype(float)
    found = text_counterparts(images, nouns, tau)
    expected = [slow_counterpart(image, nouns, tau) for image in images]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_images_and_counterparts_have_the_same_weight(two_spaces):
    features = tac_features(two_spaces, two_spaces.nouns)
    assert features.shape == (200, 100 + 256)
    for part in (features[:, :100], features[:, 100:]):
        np.testing.assert_allclose((part**2).sum(axis=1), 0.5, atol=1e-5)
