from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.zero_shot import ZeroShot
from nouncut.paper.scores import clustering_scores

QUICK = [name for name, method in METHODS.items() if not method.needs_torch]


@pytest.mark.parametrize("name", QUICK)
def test_every_quick_method_finds_the_classes(data, problem, name):
    labels = METHODS[name].fit_predict(problem, 0)
    assert labels.shape == (200,)
    assert np.issubdtype(labels.dtype, np.integer)
    assert clustering_scores(data.labels, labels).acc > 0.9


def test_trained_methods_are_marked():
    trained = [name for name, method in METHODS.items() if method.needs_torch]
    assert trained == ["scan", "sic", "tac"]
    assert all(name == method.name for name, method in METHODS.items())


def test_zero_shot_labels_are_the_classes_themselves(data, problem):
    labels = METHODS["clip-zero-shot"].fit_predict(problem, 0)
    assert np.mean(labels == data.labels) > 0.9
    images, classes = data.features[:20], problem.class_features
    slow = [
        int(np.argmax([image @ name / np.linalg.norm(name) for name in classes]))
        for image in images
    ]
    assert ZeroShot().fit_predict(images, class_features=classes).tolist() == slow


def test_zero_shot_without_names_says_what_is_missing(problem):
    with pytest.raises(ValueError, match="names of the classes"):
        METHODS["clip-zero-shot"].fit_predict(replace(problem, class_features=None), 0)


@pytest.mark.parametrize(
    ("name", "ensemble"),
    [("ours", "diffusion"), ("ours-naive", "average"), ("ours-pe", "prompt_mean")],
)
def test_ours_is_the_estimator(problem, name, ensemble):
    problem = replace(problem, nouns=problem.nouns[:2])
    model = NTKSpectralClustering(5, tau=0.04, ensemble=ensemble, random_state=0)
    expected = model.fit_predict(problem.visual, noun_features=problem.nouns)
    np.testing.assert_array_equal(METHODS[name].fit_predict(problem, 0), expected)


def test_ours_chooses_a_temperature_where_none_is_given(problem):
    labels = METHODS["ours-naive"].fit_predict(replace(problem, tau=None), 0)
    model = NTKSpectralClustering(5, tau="auto", ensemble="average", random_state=0)
    expected = model.fit_predict(problem.visual, noun_features=problem.nouns)
    np.testing.assert_array_equal(labels, expected)


def test_single_prompts_use_that_prompt_alone(problem):
    model = NTKSpectralClustering(5, tau=0.04, random_state=0)
    expected = model.fit_predict(problem.visual, noun_features=problem.nouns[2])
    np.testing.assert_array_equal(METHODS["ours-prompt-3"].fit_predict(problem, 0), expected)


def test_missing_prompts_are_named(problem):
    with pytest.raises(ValueError, match="Prompt 4"):
        METHODS["ours-prompt-4"].fit_predict(replace(problem, nouns=problem.nouns[:3]), 0)


@pytest.mark.parametrize("name", ["gradnorm", "ours-gradnorm"])
def test_given_nouns_of_gradnorm_are_used(problem, name):
    problem = replace(problem, nouns=problem.nouns[:2])
    own = METHODS[name].fit_predict(replace(problem, gradnorm_nouns=problem.nouns), 0)
    twin = {"gradnorm": "tac-kmeans", "ours-gradnorm": "ours"}[name]
    np.testing.assert_array_equal(own, METHODS[twin].fit_predict(problem, 0))
