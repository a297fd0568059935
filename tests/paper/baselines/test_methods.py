from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.kmeans import spherical_kmeans
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.scores import clustering_scores

# Those of other packages compile for seconds, and find the number of clusters themselves.
QUICK = [name for name, method in METHODS.items() if not method.needs_torch and not method.package]
# Made nouns have little in common with other nouns of their class, and all images share a part.
LESS_ACCURATE = {"wordnet-zero-shot": 0.75, "ssc-omp": 0.8}


@pytest.mark.parametrize("name", QUICK)
def test_every_quick_method_finds_the_classes(data, problem, name):
    labels = METHODS[name].fit_predict(problem, 0)
    assert labels.shape == (200,)
    assert np.issubdtype(labels.dtype, np.integer)
    assert clustering_scores(data.labels, labels).acc > LESS_ACCURATE.get(name, 0.9)


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


def test_noun_zero_shot_merges_nouns_by_the_images_that_they_fit_best(problem):
    labels = METHODS["wordnet-zero-shot"].fit_predict(problem, 0)
    nouns = unit_rows(sum(problem.nouns))
    best = [int(np.argmax(nouns @ image)) for image in problem.unit_semantic]
    # One label per noun.
    merged = dict(zip(best, labels.tolist(), strict=True))
    assert [merged[noun] for noun in best] == labels.tolist()
    assert len(set(best)) > len(set(labels)) == 5

    def score(cluster_of: dict[int, int]) -> float:
        """Weighted spherical k-means: each noun counts as often as it has images."""
        sums = np.zeros((5, nouns.shape[1]))
        for noun in best:
            sums[cluster_of[noun]] += nouns[noun]
        return float(np.linalg.norm(sums, axis=1).sum())

    for noun in set(best):
        for cluster in range(5):
            # No noun could better be in another cluster, given the mean directions.
            assert score(merged) >= score({**merged, noun: cluster}) - 0.05 * best.count(noun)
    unweighted = spherical_kmeans(nouns[sorted(set(best))].astype(np.float32), 5, 0).labels
    assert score(merged) >= score(dict(zip(sorted(set(best)), unweighted.tolist(), strict=True)))


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


def test_the_product_trusts_wrong_words_less(problem):
    """A table shows the paper's coupling beside what `nouncut cluster` does."""
    turned = replace(problem, semantic=np.random.default_rng(0).permutation(problem.semantic))
    product, paper = (METHODS[name].fit_predict(turned, 0) for name in ("nouncut", "ours"))
    truth = METHODS["nouncut"].fit_predict(problem, 0)
    assert clustering_scores(truth, product).acc > clustering_scores(truth, paper).acc


@pytest.mark.parametrize(("name", "twin"), [("gradnorm", "tac-kmeans"), ("ours-gradnorm", "ours")])
def test_nouns_of_gradnorms_filter_are_used(problem, name, twin):
    labels = METHODS[name].fit_predict(problem, 0)
    swapped = replace(problem, nouns=problem.gradnorm_nouns)
    np.testing.assert_array_equal(labels, METHODS[twin].fit_predict(swapped, 0))
