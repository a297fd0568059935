from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import pytest

from nouncut.compute.checks import check_choice, check_nouns, check_positive, warn_user
from nouncut.errors import ParameterError


@pytest.mark.parametrize("value", ["fast", None, ["exact"]])
def test_a_choice_names_the_parameter_and_the_values(value):
    with pytest.raises(ParameterError, match=r"`solver` must be one of 'auto', 'exact'; got "):
        check_choice("solver", value, ("auto", "exact"))


@pytest.mark.parametrize(
    ("value", "kind"),
    [(0, Integral), (2.0, Integral), (True, Integral), (0.0, Real), (np.inf, Real), ("1", Real)],
)
def test_numbers_out_of_range_are_named(value, kind):
    with pytest.raises(ParameterError, match="`tol` must be a"):
        check_positive({"tol": value}, kind)


@pytest.mark.parametrize(("value", "kind"), [(np.int64(3), Integral), (np.float32(0.5), Real)])
def test_numbers_of_numpy_are_numbers(value, kind):
    check_positive({"tol": value}, kind)


def test_nouns_must_match_their_features():
    assert check_nouns(np.array(["cat", "dog"]), 2) == ["cat", "dog"]
    with pytest.raises(ParameterError, match="`nouns` has 1 words, but `noun_features` has 2 rows"):
        check_nouns(["cat"], 2)


def test_a_warning_shows_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="careful") as caught:
        warn_user("careful")
    assert caught[0].filename == __file__
