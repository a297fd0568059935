from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nouncut.words.assignment import assign_names


@pytest.mark.parametrize("seed", range(5))
def test_no_other_assignment_has_a_larger_product(seed):
    scores = np.random.default_rng(seed).uniform(0.2, 1, size=(4, 6))
    found = assign_names(scores)
    best = max(np.prod(scores[range(4), list(columns)]) for columns in permutations(range(6), 4))
    assert np.prod(scores[range(4), found]) == pytest.approx(best)


def test_a_strong_cluster_does_not_cost_a_weak_one_its_name():
    # The sum of scores would give name 0 to the first cluster, whose second choice is as good.
    scores = np.array([[9.0, 8.0], [0.9, 0.02]])
    assert assign_names(scores).tolist() == [1, 0]


def test_of_equal_claims_the_better_fit_wins():
    assert assign_names(np.array([[0.5], [0.7], [0.6]])).tolist() == [-1, 0, -1]
    assert assign_names(np.array([[0.7], [0.5]])).tolist() == [0, -1]


def test_names_that_do_not_fit_are_not_given():
    scores = np.array([[0.5, 0.001], [0.4, 0.0]])
    assert assign_names(scores).tolist() == [0, -1]


@pytest.mark.parametrize("shape", [(3, 0), (2, 5)])
def test_without_evidence_there_are_no_names(shape):
    assert (assign_names(np.zeros(shape)) == -1).all()
