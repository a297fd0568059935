from __future__ import annotations

import pickle
from collections import OrderedDict
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.compute.pickles import PICKLE_FAILURES, PickleRules, read_pickle

PLAIN = PickleRules(
    frozenset({"collections OrderedDict"}),
    call=lambda name, arguments: {},
    set_state=lambda value, state: None,
    find=lambda key: key,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner, inner, inner)
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(value=VALUES)
def test_plain_values_come_back(value):
    assert read_pickle(BytesIO(pickle.dumps(value, 2)), PLAIN) == value


def test_values_that_occur_twice_are_one_value():
    shared = ["a"]
    found = read_pickle(BytesIO(pickle.dumps([shared, shared], 2)), PLAIN)
    assert found[0] is found[1]


def test_only_listed_names_can_be_called():
    assert read_pickle(BytesIO(pickle.dumps(OrderedDict(), 2)), PLAIN) == {}
    with pytest.raises(ValueError, match="names 'builtins complex"):
        read_pickle(BytesIO(pickle.dumps(complex, 2).replace(b"__builtin__", b"builtins")), PLAIN)


@pytest.mark.parametrize(
    "program", [b"", b"\x80\x02K\x01", b".", b"}K\x01K\x02s.", b"K\x01)R.", b"\x80\x02h\x05."]
)
def test_broken_programs_are_refused(program):
    with pytest.raises(PICKLE_FAILURES):
        read_pickle(BytesIO(program), PLAIN)
