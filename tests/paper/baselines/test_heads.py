from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from nouncut.paper.baselines.scan import SCAN
from nouncut.paper.baselines.sic import SIC, nearby_nouns, pseudo_labels
from nouncut.paper.baselines.tac_heads import Schedule, TACHeads
from nouncut.paper.baselines.training import count_epochs
from nouncut.paper.scores import clustering_scores

torch = pytest.importorskip("torch")

# Quicker than by default, and long enough for made data.
MODELS = {
    "scan": SCAN(5, n_epochs=1, min_steps=400, learning_rate=2e-3, random_state=0),
    "sic": SIC(5, n_epochs=1, min_steps=400, learning_rate=2e-3, random_state=0),
    "tac": TACHeads(5, min_steps=60, random_state=0),
}


def inputs(name: str, data) -> dict:
    if name == "scan":
        return {}
    key = "candidate_features" if name == "sic" else "noun_features"
    return {key: data.noun_features[0]}


@pytest.mark.parametrize("name", MODELS)
def test_loss_falls_and_no_cluster_is_lost(data, name):
    model = MODELS[name].fit(data.features, **inputs(name, data))
    assert model.losses_[-1] < model.losses_[0] - 0.5
    assert np.bincount(model.labels_, minlength=5).min() > 20
    assert clustering_scores(data.labels, model.labels_).acc > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_same_seed_gives_the_same_labels_and_leaves_torch_alone(data, name):
    settings = {"min_steps": 10, **({"n_epochs": 1} if name != "tac" else {})}
    if name == "tac":
        settings["schedule"] = Schedule(2, 100, 0.5)
    model = type(MODELS[name])(5, random_state=1, **settings)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    n_threads = torch.get_num_threads()
    first = model.fit(data.features, **inputs(name, data)).losses_
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == n_threads
    assert model.fit(data.features, **inputs(name, data)).losses_ == first


@pytest.mark.parametrize("name", ["sic", "tac"])
def test_images_may_have_a_visual_space_of_their_own(data, two_spaces, name):
    visual, semantic = two_spaces
    model = MODELS[name]
    labels = model.fit_predict(visual, semantic_features=semantic, **inputs(name, data))
    assert clustering_scores(data.labels, labels).acc > 0.9


def slow_pseudo_labels(confidence, semantic, nouns):
    n, k = confidence.shape
    text_centers = []
    for cluster in range(k):
        surest = sorted(range(n), key=lambda i: -confidence[i, cluster])[: round(0.9 * n / k)]
        center = sum(semantic[i] for i in surest)
        nearest = sorted(range(len(nouns)), key=lambda j: -(nouns[j] @ center))[:30]
        text_center = sum(nouns[j] for j in nearest)
        text_centers.append(text_center / np.linalg.norm(text_center))
    return [int(np.argmax([image @ center for center in text_centers])) for image in semantic]


def test_pseudo_labels_follow_the_description(data):
    confidence = np.random.default_rng(0).dirichlet(np.ones(5), size=200)
    confidence += 0.3 * np.eye(5)[data.labels]
    semantic, nouns = data.features.astype(float), data.noun_features[0].astype(float)
    found = pseudo_labels(confidence, semantic, nouns)
    assert found.tolist() == slow_pseudo_labels(confidence, semantic, nouns)
    assert clustering_scores(data.labels, found).acc > 0.9


def test_nouns_are_near_a_centre_and_not_too_common():
    rng = np.random.default_rng(0)
    nouns = rng.normal(size=(2000, 8))
    nouns[:, 0] += np.where(np.arange(2000) % 4 == 0, 30, 3)
    nouns /= np.linalg.norm(nouns, axis=1, keepdims=True)
    centers = np.eye(8)[:2]
    mean = nouns.mean(axis=0) / np.linalg.norm(nouns.mean(axis=0))
    near = {
        i
        for center in centers
        for i in sorted(range(2000), key=lambda j: -(nouns[j] @ center))[:500]
    }
    expected = sorted(i for i in near if nouns[i] @ mean < 0.95)
    assert nearby_nouns(centers, nouns).tolist() == expected
    assert 0 < len(expected) < len(near)


def test_common_nouns_stay_where_there_are_no_others():
    nouns = np.ones((40, 2)) / np.sqrt(2)
    assert len(nearby_nouns(np.eye(2), nouns)) == 40


@pytest.mark.parametrize(
    ("n_images", "expected"), [(10_000, 20), (1_000, 150), (100, 300), (13_000, 20)]
)
def test_small_sets_are_trained_on_for_longer(n_images, expected):
    assert count_epochs(n_images, 512, 20, 300) == expected


def test_importing_the_methods_does_not_import_torch():
    code = "import sys, nouncut.baselines; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
