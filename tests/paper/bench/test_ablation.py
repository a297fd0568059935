from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nouncut.paper.bench.ablation import (
    class_affinities,
    follow_diffusion,
    parameter_values,
    vary_parameter,
)


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
    assert len(found.nmi) == len(found.objective) > 1


def test_affinities_are_sorted_by_class(encoded):
    for matrix in class_affinities(encoded.problem(0), encoded.labels).values():
        assert matrix.shape == (45, 45)
        assert 0 <= matrix.min() <= matrix.max() <= 1
        same = np.equal.outer(np.sort(encoded.labels), np.sort(encoded.labels))
        assert matrix[same].mean() > matrix[~same].mean()
