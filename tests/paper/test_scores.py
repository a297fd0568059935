from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from nouncut.paper.scores import clustering_scores, plain_accuracy


def brute_force_accuracy(true: list[int], found: list[int]) -> float:
    """Try every one-to-one match of clusters with classes, padding the smaller side."""
    size = max(max(true), max(found)) + 1
    return max(
        np.mean([match[cluster] == label for label, cluster in zip(true, found, strict=True)])
        for match in permutations(range(size))
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_accuracy_is_the_best_match(pairs):
    true, found = ([pair[side] for pair in pairs] for side in (0, 1))
    assert clustering_scores(true, found).acc == pytest.approx(brute_force_accuracy(true, found))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_plain_accuracy_never_exceeds_the_best_match(pairs):
    true, found = ([pair[side] for pair in pairs] for side in (0, 1))
    assert plain_accuracy(true, found) <= clustering_scores(true, found).acc
    assert plain_accuracy(true, true) == 1


def test_nmi_is_normalised_by_the_arithmetic_mean():
    true, found = [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]
    arithmetic = normalized_mutual_info_score(true, found, average_method="arithmetic")
    geometric = normalized_mutual_info_score(true, found, average_method="geometric")
    assert clustering_scores(true, found).nmi == pytest.approx(arithmetic)
    assert arithmetic != pytest.approx(geometric)


def test_labels_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="inconsistent"):
        clustering_scores([0, 1], [0, 1, 2])


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="nothing to score"):
        clustering_scores([], [])
