from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.scan import ScanSettings, scan, scan_settings, train_on_own_labels
from nouncut.paper.baselines.sic import SicSettings, nearby_nouns, pseudo_labels, sic, sic_settings
from nouncut.paper.baselines.tac_heads import TacSettings, _Side, tac_heads, tac_settings
from nouncut.paper.baselines.temi import TemiSettings, temi, temi_settings
from nouncut.paper.baselines.training import (
    Schedule,
    TrainedLabels,
    clip_scaled,
    linear_head_schedule,
    neighbors_and_self,
)
from nouncut.paper.baselines.turtle import TurtleSettings, turtle
from nouncut.paper.scores import clustering_scores

Fit = Callable[[Problem, int, Schedule], TrainedLabels]


def fit_turtle(problem: Problem, seed: int, schedule: Schedule) -> TrainedLabels:
    settings = [TurtleSettings(schedule.min_steps, inner_rate=0.01)]
    spaces, train_spaces = [problem.unit_visual], [problem.unit_train_visual]
    return turtle(spaces, train_spaces, problem.n_clusters, seed, settings)


# Quicker than by default, and long enough for made data.
LINEAR = Schedule(n_epochs=1, batch_size=128, learning_rate=3e-3, min_steps=300)
HEADS = Schedule(n_epochs=1, batch_size=512, learning_rate=1e-3, betas=(0.9, 0.99), min_steps=60)
TEACHERS = Schedule(1, 64, 2e-3, min_steps=150, optimizer="adamw", warmup=0.2)
MODELS: dict[str, tuple[Fit, Schedule]] = {
    "scan": (lambda problem, seed, schedule: scan(problem, seed, ScanSettings(schedule)), LINEAR),
    "sic": (lambda problem, seed, schedule: sic(problem, seed, SicSettings(schedule)), LINEAR),
    "tac": (
        lambda problem, seed, schedule: tac_heads(problem, seed, TacSettings(schedule, 0.5)),
        HEADS,
    ),
    "temi": (
        lambda problem, seed, schedule: temi(problem, seed, TemiSettings(schedule, 2, 0.9)),
        TEACHERS,
    ),
    "turtle": (fit_turtle, LINEAR),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_falls_and_no_cluster_is_lost(data, problem, name):
    fit, schedule = MODELS[name]
    found = fit(problem, 0, schedule)
    assert found.losses[-1] < found.losses[0] - 0.1
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


@pytest.mark.parametrize("name", MODELS)
def test_heads_are_trained_on_the_train_split_and_applied_to_the_test_split(data, problem, name):
    """The test split alone could not be clustered: it has an image of every class."""
    fit, schedule = MODELS[name]
    test = [int(np.flatnonzero(data.labels == label)[0]) for label in range(5)]
    rest = np.setdiff1d(np.arange(200), test)
    split = replace(
        problem,
        visual=problem.visual[test],
        semantic=problem.semantic[test],
        train_visual=problem.visual[rest],
        train_semantic=problem.semantic[rest],
    )
    assert sorted(fit(split, 0, schedule).labels) == [0, 1, 2, 3, 4]
    # A head gives an image the same cluster, whichever images are asked for beside it.
    twice = replace(split, visual=split.visual[[0, 0, 1]], semantic=split.semantic[[0, 0, 1]])
    assert fit(twice, 0, schedule).labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["sic", "tac"])
def test_images_may_have_a_visual_space_of_their_own(data, two_spaces, name):
    fit, schedule = MODELS[name]
    assert clustering_scores(data.labels, fit(two_spaces, 0, schedule).labels).acc > 0.9


def slow_pseudo_labels(confidence, semantic, nouns):
    n, k = confidence.shape
    text_centers = []
    for cluster in range(k):
        surest = sorted(range(n), key=lambda i: -confidence[i, cluster])[: int(0.9 * (n // k))]
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


@pytest.mark.parametrize(
    ("n_images", "rate"), [(50_000, 1e-4), (5_000, 1e-3), (1_000, 1e-3), (5_120, 1e-4)]
)
def test_small_sets_are_trained_on_at_ten_times_the_rate(n_images, rate):
    assert linear_head_schedule(100, 128, 1e-4).rate(n_images, 1.0) == rate


def test_the_rate_rises_in_the_first_share_of_the_steps():
    schedule = Schedule(100, 1024, 4e-4, warmup=0.2)
    rates = [schedule.rate(50_000, share) for share in (0.05, 0.1, 0.2, 0.7)]
    np.testing.assert_allclose(rates, [1e-4, 2e-4, 4e-4, 4e-4])


def test_settings_of_scan_are_the_published_ones():
    for family in ("imagenet-1k", "imagenet-c"):
        found = scan_settings(family)
        assert (found.n_heads, found.n_neighbors, found.schedule.batch_size) == (10, 50, 1024)
        assert found.schedule.weight_decay == 0
    for family, n_epochs, batch in (("cifar-10", 50, 128), ("cifar-20", 100, 512), ("", 100, 128)):
        found = scan_settings(family)
        assert (found.n_heads, found.n_neighbors) == (1, 20)
        assert (found.schedule.n_epochs, found.schedule.batch_size) == (n_epochs, batch)
        assert found.schedule.weight_decay == 1e-4


def test_settings_of_sic_and_tac_are_the_published_ones():
    cases = (("cifar-10", 0.1, 1e-4), ("imagenet-dogs", 1.0, 0.009), ("stl-10", 1.0, 1e-4))
    for family, teaching, decay in cases:
        found = sic_settings(family)
        assert (found.teaching, found.schedule.weight_decay) == (teaching, decay)
    for family in ("ucf-101", "imagenet-1k", "imagenet-v2"):
        long = tac_settings(family)
        assert (long.schedule.n_epochs, long.schedule.batch_size, long.temperature) == (
            100,
            8192,
            5,
        )
    # Many clusters alone are no reason: TAC was not published for these.
    for family in ("cars", "food", "cifar-10", ""):
        short = tac_settings(family)
        assert (short.schedule.n_epochs, short.schedule.batch_size) == (20, 512)
        assert short.temperature == 0.5


def test_temi_has_the_published_settings_where_there_are_enough_images():
    assert temi_settings(50_000).n_heads == 16
    assert temi_settings(50_000).schedule.n_epochs == 100
    assert temi_settings(1_000).schedule.count_epochs(1_000) < 200


@pytest.mark.parametrize(
    ("dataset", "family"),
    [("CIFAR-10", "cifar-10"), ("imagenet-c/fog/3", "imagenet-c"), ("", "")],
)
def test_the_family_of_a_data_set(problem, dataset, family):
    assert replace(problem, dataset=dataset).family == family


def test_the_data_set_decides_the_settings(problem, monkeypatch):
    asked = []
    for module, name in (
        (scan, "scan_settings"),
        (sic, "sic_settings"),
        (tac_heads, "tac_settings"),
    ):

        def settings(family, original=module.__globals__[name]):
            asked.append(family)
            found = original(family)
            return replace(found, schedule=replace(found.schedule, n_epochs=1, min_steps=1))

        monkeypatch.setitem(module.__globals__, name, settings)
        module(replace(problem, dataset="ImageNet-Dogs"), 0)
    assert asked == ["imagenet-dogs"] * 3


def test_weights_of_tac_heads_are_small_and_normal(data):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [layer for layer in _Side(data.features, 50).head if hasattr(layer, "in_features")]
    for layer in layers:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        # A uniform distribution of this deviation ends at 0.035.
        assert layer.weight.abs().max() > 0.05


def test_own_and_neighbour_are_normalised_in_passes_of_their_own(data):
    side = _Side(data.features, 5)
    seen = []
    side.head[1].register_forward_hook(lambda layer, inputs, output: seen.append(output))
    side.probabilities(torch.arange(40))
    assert [len(output) for output in seen] == [40, 40]
    for output in seen:
        np.testing.assert_allclose(output.mean(dim=0).detach(), 0, atol=1e-4)


def test_neighbours_are_drawn_with_the_image_itself(data):
    found = neighbors_and_self(data.features, 20)
    assert found.shape == (200, 21)
    assert found[:, 0].tolist() == list(range(200))


def test_features_are_as_long_as_those_of_clip(data):
    np.testing.assert_allclose(np.linalg.norm(clip_scaled(data.features), axis=1), 10, rtol=1e-5)


def test_of_several_scan_heads_the_best_one_is_used(data, problem):
    schedule = replace(LINEAR, min_steps=150)
    found = scan(problem, 0, ScanSettings(schedule, n_heads=4))
    assert clustering_scores(data.labels, found.labels).acc > 0.95


def test_labelling_itself_keeps_what_scan_has_found(data, problem):
    settings = ScanSettings(LINEAR)
    before, after = (scan(problem, 0, settings, self_label=step) for step in (False, True))
    assert len(after.losses) == len(before.losses) + 1000
    assert after.losses[: len(before.losses)] == before.losses
    assert clustering_scores(data.labels, after.labels).acc > 0.95


def test_labelling_itself_teaches_what_other_features_mean():
    """The head is sure by the first feature, and a little wrong about the second."""
    features = torch.tensor([[10.0, 10.0], [-10.0, -10.0]]).repeat(20, 1)
    head = torch.nn.Linear(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, -0.05], [-1.0, 0.05]]))
        head.bias.zero_()
    second = torch.tensor([[0.0, 10.0], [0.0, -10.0]])
    assert head(second).argmax(dim=1).tolist() == [1, 0]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        losses = train_on_own_labels(head, features, "")
    assert losses[-1] < 0.8 * losses[0]
    assert head(second).argmax(dim=1).tolist() == [0, 1]
