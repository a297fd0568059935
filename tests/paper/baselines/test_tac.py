from __future__ import annotations

import numpy as np
import pytest

from nouncut.paper.baselines.gradnorm import GradNorm
from nouncut.paper.baselines.spectral import KERNEL_NAMES
from nouncut.paper.baselines.tac import TAC, text_counterparts
from nouncut.paper.scores import clustering_scores
from nouncut.words.filters import image_centers


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


@pytest.mark.parametrize("method", ["kmeans", *KERNEL_NAMES])
def test_classes_are_found(data, method):
    model = TAC(5, method=method, random_state=0)
    labels = model.fit_predict(data.features, noun_features=data.noun_features)
    assert clustering_scores(data.labels, labels).acc > 0.95


def test_images_may_have_a_visual_space_of_their_own(data, two_spaces):
    visual, semantic = two_spaces
    model = TAC(5, random_state=0)
    labels = model.fit_predict(visual, noun_features=data.noun_features, semantic_features=semantic)
    assert model.counterparts_.shape == semantic.shape
    assert clustering_scores(data.labels, labels).acc > 0.95


def test_unknown_method_is_refused(data):
    with pytest.raises(ValueError, match="kmeans"):
        TAC(5, method="ward").fit(data.features, noun_features=data.noun_features)


def slow_gradnorm_choice(centers: np.ndarray, nouns: np.ndarray) -> list[int]:
    best, norms = [], []
    for noun in nouns:
        weights = np.exp(centers.astype(float) @ noun / 0.04)
        s = weights / weights.sum()
        best.append(int(s.argmax()))
        norm = np.sum(s**2) + (1 - s.max()) ** 2 - s.max() ** 2
        norms.append(np.sqrt(max(norm, 0) * float(noun @ noun)))
    kept = []
    for center in range(len(centers)):
        own = [i for i in range(len(nouns)) if best[i] == center]
        kept += sorted(own, key=lambda i: norms[i])[:5]
    return sorted(kept)


def test_gradnorm_keeps_the_nouns_of_the_smallest_gradients(data):
    nouns = data.noun_features[0]
    model = GradNorm(5, random_state=0).fit(data.features, candidate_features=nouns)
    assert clustering_scores(data.labels, model.labels_).acc > 0.95
    centers = image_centers(data.features, 15, random_state=0)
    assert model.nouns_.tolist() == slow_gradnorm_choice(centers, nouns.astype(float))


def test_gradnorm_clusters_as_tac_does_with_its_nouns(data):
    nouns = data.noun_features[0]
    model = GradNorm(5, random_state=0).fit(data.features, candidate_features=nouns)
    tac = TAC(5, random_state=0).fit(data.features, noun_features=nouns[model.nouns_])
    np.testing.assert_array_equal(model.labels_, tac.labels_)
