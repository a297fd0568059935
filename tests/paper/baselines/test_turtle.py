from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from nouncut.paper.baselines.turtle import (
    TurtleSettings,
    _fit_classifier,
    choose_by_generalization,
    generalization_score,
    turtle,
)
from nouncut.paper.scores import clustering_scores


def test_the_score_is_the_accuracy_on_images_held_out(data):
    found = generalization_score([data.features], data.labels, random_state=3)
    rows = 10 * data.features
    accuracies = []
    for held_out in np.array_split(np.random.default_rng(3).permutation(200), 10):
        rest = np.setdiff1d(np.arange(200), held_out)
        model = LogisticRegression(max_iter=1000).fit(rows[rest], data.labels[rest])
        accuracies.append(model.score(rows[held_out], data.labels[held_out]))
    assert found == pytest.approx(np.mean(accuracies))


def test_several_spaces_count_alike(data):
    noise = np.random.default_rng(0).normal(size=(200, 20))
    alone = [generalization_score([space], data.labels) for space in (data.features, noise)]
    assert alone[0] > 0.95 > 0.5 > alone[1]
    both = generalization_score([data.features, noise], data.labels)
    assert both == pytest.approx(np.mean(alone))


def test_the_score_chooses_the_better_labels_without_knowing_the_classes(data):
    rng = np.random.default_rng(0)
    spoilt = {
        share: np.where(rng.random(200) < share, rng.integers(5, size=200), data.labels)
        for share in (0.5, 0.0, 0.2)
    }
    assert choose_by_generalization([data.features], spoilt) == 0.0


def test_one_cluster_is_no_error(data):
    assert generalization_score([data.features], np.zeros(200, int)) == 1.0


def test_settings_are_chosen_by_the_score(data):
    # Without a single step, labels are those of a random encoder.
    untrained, trained = TurtleSettings(0), TurtleSettings(300, inner_rate=0.01)
    spaces = [data.features]
    found = turtle(spaces, spaces, 5, 0, [untrained, trained])
    assert len(found.losses) == 300
    assert clustering_scores(data.labels, found.labels).acc > 0.95


def test_the_classifier_takes_steps_of_adam_on_the_cross_entropy(data):
    features = torch.from_numpy(10 * data.features)
    labels = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(5), size=200)).float()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = _fit_classifier(features, labels, TurtleSettings(inner_rate=0.01))
        torch.manual_seed(0)
        classifier = torch.nn.Linear(256, 5)
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(classifier(features), labels).backward()
        optimizer.step()
    np.testing.assert_allclose(found, classifier(features).detach(), atol=1e-3)


def test_two_spaces_are_labelled_together(data):
    turned = data.features @ np.random.default_rng(0).normal(size=(256, 64))
    spaces = [data.features, turned]
    found = turtle(spaces, spaces, 5, 0, [TurtleSettings(300, inner_rate=0.01)])
    assert clustering_scores(data.labels, found.labels).acc > 0.95
