from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.scores import clustering_scores

QUICK = [name for name, method in METHODS.items() if not method.needs_torch]


@pytest.mark.parametrize("name", QUICK)
def test_every_quick_method_finds_the_classes(data, problem, name):
    labels = METHODS[name].fit_predict(problem, 0)
    assert labels.shape == (200,)
    assert np.issubdtype(labels.dtype, np.integer)
    assert clustering_scores(data.labels, labels).acc > 0.9


@pytest.mark.parametrize("name", ["clip-zero-shot", "clip-kmeans", "clip-sc-rbf", "tac-kmeans"])
def test_images_may_have_a_visual_space_of_their_own(data, two_spaces, name):
    labels = METHODS[name].fit_predict(two_spaces, 0)
    assert clustering_scores(data.labels, labels).acc > 0.9
    lengths = np.random.default_rng(1).uniform(0.1, 50, size=(200, 1))
    scaled = replace(two_spaces, visual=two_spaces.visual * lengths)
    np.testing.assert_array_equal(METHODS[name].fit_predict(scaled, 0), labels)


def test_trained_methods_are_marked():
    trained = [name for name, method in METHODS.items() if method.needs_torch]
    assert trained == ["scan", "scan-self-label", "sic", "tac", "temi", "turtle"]
    assert all(name == method.name for name, method in METHODS.items())


def test_importing_the_methods_does_not_import_torch():
    code = "import sys, nouncut.paper.baselines.methods as m; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_zero_shot_labels_are_the_classes_themselves(data, problem):
    labels = METHODS["clip-zero-shot"].fit_predict(problem, 0)
    slow = [
        int(np.argmax([image @ name / np.linalg.norm(name) for name in problem.class_features]))
        for image in data.features
    ]
    assert labels.tolist() == slow
    assert np.mean(labels == data.labels) > 0.9


@pytest.mark.parametrize(
    ("name", "ensemble"),
    [("ours", "diffusion"), ("ours-naive", "average"), ("ours-pe", "prompt_mean")],
)
def test_ours_is_the_estimator(problem, name, ensemble):
    problem = replace(problem, nouns=problem.nouns[:2])
    options = {"tau": 0.04, "n_neighbors": 30, "ensemble": ensemble}
    model = NTKSpectralClustering(5, random_state=0, **options)
    expected = model.fit_predict(problem.visual, noun_features=problem.nouns)
    np.testing.assert_array_equal(METHODS[name].fit_predict(problem, 0), expected)


def test_ours_chooses_a_temperature_where_none_is_given(problem):
    labels = METHODS["ours-naive"].fit_predict(replace(problem, tau=None), 0)
    options = {"tau": "auto", "n_neighbors": 30, "ensemble": "average"}
    model = NTKSpectralClustering(5, random_state=0, **options)
    expected = model.fit_predict(problem.visual, noun_features=problem.nouns)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("name", ["ours", "tac-kmeans", "tac-sc-rbf"])
def test_single_prompts_use_that_prompt_alone(problem, name):
    labels = METHODS[f"{name}-prompt-3"].fit_predict(problem, 0)
    alone = replace(problem, nouns=[problem.nouns[2]])
    np.testing.assert_array_equal(labels, METHODS[name].fit_predict(alone, 0))


@pytest.mark.parametrize(("name", "twin"), [("gradnorm", "tac-kmeans"), ("ours-gradnorm", "ours")])
def test_nouns_of_gradnorms_filter_are_used(problem, name, twin):
    labels = METHODS[name].fit_predict(problem, 0)
    swapped = replace(problem, nouns=problem.gradnorm_nouns)
    np.testing.assert_array_equal(labels, METHODS[twin].fit_predict(swapped, 0))
