from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nouncut.paper.baselines.ours import fit_ours
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.bench import ablation
from nouncut.paper.bench.ablation import (
    _relative,
    class_affinities,
    follow_diffusion,
    parameter_values,
    vary_parameter,
)
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like


@pytest.mark.parametrize("parameter", ["tau", "q", "mu", "lambda"])
def test_a_parameter_is_varied_once(encoded, parameter):
    curve = vary_parameter(encoded, parameter, seeds=1)
    assert curve.scores.shape == (len(curve.values), 1, 3)
    assert curve.default in curve.values
    assert curve.scores.max() > 99
    kept = sorted((encoded.setup.output / "results").rglob(f"ours-{parameter}-*.json"))
    assert len(kept) == len(curve.values)
    times = [path.stat().st_mtime_ns for path in kept]
    again = vary_parameter(encoded, parameter, seeds=1)
    np.testing.assert_array_equal(again.scores, curve.scores)
    assert [path.stat().st_mtime_ns for path in kept] == times


def test_a_curve_has_means_and_deviations_over_seeds(encoded):
    curve = replace(
        vary_parameter(encoded, "q", seeds=1),
        values=(5.0, 10.0),
        scores=np.array([[[1.0, 2, 3], [3, 2, 1]], [[4, 4, 4], [5, 5, 5]]]),
    )
    records = curve.records()
    assert [(row["value"], row["metric"], row["mean"]) for row in records[:3]] == [
        (5.0, "NMI", 2),
        (5.0, "ACC", 2),
        (5.0, "ARI", 2),
    ]
    assert [row["deviation"] for row in records[:2]] == pytest.approx([np.sqrt(2), 0])
    alone = replace(curve, scores=curve.scores[:, :1]).records()
    assert {row["deviation"] for row in alone} == {None}


def test_a_chosen_temperature_is_the_middle_of_the_curve(encoded):
    problem = replace(encoded.problem(0), tau=None)
    values, default = parameter_values("tau", problem)
    assert default in values
    assert values[0] < default < values[-1]


def test_the_objective_never_rises(encoded):
    found = follow_diffusion(encoded.problem(0), encoded.labels)
    assert np.all(np.diff(found.objective) <= 1e-6 * abs(found.objective[0]))
    assert len(found.nmi) == len(found.objective) == 10
    assert found.nmi[-1] > 99


@pytest.fixture(scope="module")
def made():
    """Return a problem of 700 images that is not easy, and its labels."""
    data = make_clip_like(700, 30, n_prompts=3, separation=0.22, random_state=0)
    nouns, classes = list(data.noun_features), data.noun_features[0][:30]
    problem = Problem(data.features, data.features, 30, nouns, nouns[0], classes, tau=0.04)
    return problem, data.labels


def test_every_iteration_is_that_of_the_published_diffusion(made, monkeypatch):
    problem, labels = made
    searches = []
    search = ablation.search_neighbors
    monkeypatch.setattr(
        ablation, "search_neighbors", lambda *args, **options: searches.append(1) or search(*args)
    )
    found = follow_diffusion(problem, labels)
    assert len(searches) == 1
    for step in (1, 4, 10):
        exact = fit_ours(problem, 0, solver="exact", max_inner_iter=1, max_iter=step, tol=1e-9)
        assert found.objective[step - 1] == pytest.approx(exact.objective_[-1], rel=1e-3)
        nmi = 100 * clustering_scores(labels, exact.labels_).nmi
        assert found.nmi[step - 1] == pytest.approx(nmi, abs=1.5)
    # There is something to see: the score is not the same at all iterations.
    assert len(set(found.nmi)) > 2


def test_affinities_are_sorted_by_class(encoded):
    labels = np.sort(encoded.labels)
    same = np.equal.outer(labels, labels) & ~np.eye(len(labels), dtype=bool)
    other = np.not_equal.outer(labels, labels)
    matrices = class_affinities(encoded.problem(0), encoded.labels)
    assert [matrix.title for matrix in matrices] == ["CLIP", "TAC", "Ours"]
    for matrix in matrices:
        assert matrix.values.shape == (45, 45)
        assert 0 <= matrix.values.min() <= matrix.values.max() == 1
        assert matrix.values[same].mean() > matrix.values[other].mean()
        assert matrix.nmi == pytest.approx(100)


def test_affinities_have_one_scale_and_no_offset(made):
    """Zero stays zero, and one is an affinity that one in 200 pairs exceeds, in every panel."""
    problem, labels = made
    for matrix in class_affinities(problem, labels):
        pairs = matrix.values[~np.eye(len(matrix.values), dtype=bool)]
        assert np.mean(pairs == 1) == pytest.approx(0.005, abs=0.001)
    shifted = np.array([[9.0, 3, 2], [3, 9, 1], [2, 1, 9]])
    np.testing.assert_allclose(_relative(shifted)[1, 2] / _relative(shifted)[0, 2], 0.5)
