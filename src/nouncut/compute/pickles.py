"""Reading pickles of known content without running them.

A pickle is a program that may call any function. This reader knows the instructions that describe
plain values, and asks the caller about the rest: names, calls and stored states. It refuses all
other instructions.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple

# What a damaged or hostile pickle can cause.
PICKLE_FAILURES = (ValueError, TypeError, AttributeError, LookupError, OverflowError, struct.error)


class PickleRules(NamedTuple):
    """What a pickle may hold beside plain values."""

    names: frozenset[str]  # Of functions and classes, such as "collections OrderedDict".
    call: Callable[[str, tuple[Any, ...]], Any]  # Makes what calling a name would make.
    set_state: Callable[[Any, Any], None]  # Gives a made value its state.
    find: Callable[[Any], Any]  # Returns a value that is stored outside the pickle.


class _Name(NamedTuple):
    text: str


class _Mark(NamedTuple):
    """The place on the stack where a tuple or the entries of a list or dictionary begin."""


def read_pickle(file: BytesIO, rules: PickleRules) -> Any:
    """Read one pickle; the file then stands behind it. Raises one of `PICKLE_FAILURES`."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _PLAIN:
            _PLAIN[name](stack, argument)
        elif name in _ASKING:
            _ASKING[name](stack, argument, rules)
        else:
            raise ValueError(f"it holds the instruction {name}, which no such file needs")
    raise ValueError("it is incomplete")


def _constant(value: Callable[[], Any]) -> Callable[[list[Any], Any], None]:
    return lambda stack, argument: stack.append(value())


def _push(stack: list[Any], argument: Any) -> None:
    stack.append(argument)


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    items: list[Any] = []
    while not isinstance(item := stack.pop(), _Mark):
        items.append(item)
    return items[::-1]


def _append_item(stack: list[Any], argument: Any) -> None:
    stack.insert(-1, _Mark())
    _append_items(stack, argument)


def _append_items(stack: list[Any], argument: Any) -> None:
    items = _pop_to_mark(stack)
    stack[-1].extend(items)


def _set_item(stack: list[Any], argument: Any) -> None:
    stack.insert(-2, _Mark())
    _set_items(stack, argument)


def _set_items(stack: list[Any], argument: Any) -> None:
    items = _pop_to_mark(stack)
    # Hashing nested tuples could take forever.
    if not all(isinstance(key, str) for key in items[::2]):
        raise ValueError("an entry has no name")
    stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _make_tuple(size: int) -> Callable[[list[Any], Any], None]:
    def make(stack: list[Any], argument: Any) -> None:
        items = [stack.pop() for _ in range(size)]
        stack.append(tuple(items[::-1]))

    return make


def _push_name(stack: list[Any], argument: str, rules: PickleRules) -> None:
    if argument not in rules.names:
        raise ValueError(f"it names {argument!r}, which no such file needs")
    stack.append(_Name(argument))


def _call(stack: list[Any], argument: Any, rules: PickleRules) -> None:
    arguments, function = stack.pop(), stack.pop()
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise ValueError("it calls what is no function")
    stack.append(rules.call(function.text, _with_texts(arguments)))


def _set_state(stack: list[Any], argument: Any, rules: PickleRules) -> None:
    state = stack.pop()
    rules.set_state(stack[-1], state)


def _find(stack: list[Any], argument: Any, rules: PickleRules) -> None:
    stack.append(rules.find(_with_texts(stack.pop())))


def _with_texts(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one.text if isinstance(one, _Name) else one for one in values)


_PLAIN: dict[str, Callable[[list[Any], Any], None]] = {
    "PROTO": lambda stack, argument: None,
    "MARK": _constant(_Mark),
    "NONE": _constant(lambda: None),
    "NEWTRUE": _constant(lambda: True),
    "NEWFALSE": _constant(lambda: False),
    "EMPTY_TUPLE": _constant(tuple),
    "EMPTY_DICT": _constant(dict),
    "EMPTY_LIST": _constant(list),
    "BININT": _push,
    "BININT1": _push,
    "BININT2": _push,
    "LONG1": _push,
    "BINUNICODE": _push,
    # Bytes of Python 2, one character each.
    "BINSTRING": _push,
    "SHORT_BINSTRING": _push,
    "TUPLE": lambda stack, argument: stack.append(tuple(_pop_to_mark(stack))),
    "TUPLE1": _make_tuple(1),
    "TUPLE2": _make_tuple(2),
    "TUPLE3": _make_tuple(3),
    "APPEND": _append_item,
    "APPENDS": _append_items,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
}
_ASKING: dict[str, Callable[[list[Any], Any, PickleRules], None]] = {
    "GLOBAL": _push_name,
    "REDUCE": _call,
    "BUILD": _set_state,
    "BINPERSID": _find,
}
