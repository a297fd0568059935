from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.scan import scan
from nouncut.paper.baselines.sic import nearby_nouns, pseudo_labels, sic
from nouncut.paper.baselines.tac_heads import tac_heads
from nouncut.paper.baselines.training import Schedule, TrainedLabels
from nouncut.paper.scores import clustering_scores

torch = pytest.importorskip("torch")


def scan_problem(problem: Problem, seed: int, schedule: Schedule) -> TrainedLabels:
    return scan(problem.unit_visual, problem.n_clusters, seed, schedule)


# Quicker than by default, and long enough for made data.
LINEAR = Schedule(n_epochs=1, batch_size=128, learning_rate=5e-3, min_steps=200)
HEADS = Schedule(n_epochs=1, batch_size=512, learning_rate=1e-3, betas=(0.9, 0.99), min_steps=60)
MODELS: dict[str, tuple[Callable[..., TrainedLabels], Any]] = {
    "scan": (scan_problem, LINEAR),
    "sic": (sic, LINEAR),
    "tac": (tac_heads, HEADS),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_falls_and_no_cluster_is_lost(data, problem, name):
    fit, schedule = MODELS[name]
    found = fit(problem, 0, schedule)
    assert found.losses[-1] < found.losses[0] - 0.5
    assert np.bincount(found.labels, minlength=5).min() > 20
    assert clustering_scores(data.labels, found.labels).acc > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_losses_and_leaves_torch_alone(problem, name):
    fit, schedule = MODELS[name]
    short = replace(schedule, batch_size=100, min_steps=4)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    n_threads = torch.get_num_threads()
    first = fit(problem, 1, short).losses
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == n_threads
    assert fit(problem, 1, short).losses == first
    assert fit(problem, 2, short).losses != first


@pytest.mark.parametrize("name", ["sic", "tac"])
def test_images_may_have_a_visual_space_of_their_own(data, two_spaces, name):
    fit, schedule = MODELS[name]
    assert clustering_scores(data.labels, fit(two_spaces, 0, schedule).labels).acc > 0.9


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
    assert Schedule(20, 512, 1e-3, min_steps=300).count_epochs(n_images) == expected
