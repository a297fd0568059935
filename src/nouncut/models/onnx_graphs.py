"""Inputs and outputs of an ONNX file, read in milliseconds without its weights.

The file is a protocol buffer: a list of fields, each with a number, a type and often a length, so
that weights can be skipped. The numbers below are those of the ONNX specification (onnx.proto).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from nouncut.errors import ModelError, describe_error, printable_path

_MODEL_GRAPH, _MODEL_OPERATORS = 7, 8
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_OPERATOR = 4
_TENSOR_NAME, _TENSOR_EXTERNAL = 8, 13
_VALUE_NAME, _VALUE_TYPE, _TYPE_TENSOR = 1, 2, 1
_TENSOR_ELEMENT, _TENSOR_SHAPE, _SHAPE_DIM, _DIM_VALUE = 1, 2, 1, 1
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Numbers of element types; weights and activations of other types are not used by models here.
_ELEMENTS: dict[int, DTypeLike] = {
    1: np.float32,
    2: np.uint8,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
}
# Parts of the names of operators on 8-bit and 4-bit numbers.
_QUANTIZED = ("Integer", "Quantize", "QLinear", "QGemm", "NBits", "Q4")


class TensorType(NamedTuple):
    """Element type and shape of an input or output; None for axes of any length."""

    dtype: np.dtype[np.generic]
    shape: tuple[int | None, ...]


@dataclass
class OnnxGraph:
    """The interface of an ONNX file, and the files beside it that hold its weights."""

    path: Path
    inputs: dict[str, TensorType] = field(default_factory=dict)
    outputs: dict[str, TensorType] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)

    @property
    def files(self) -> list[Path]:
        """The file itself and its external weights."""
        return [self.path, *(self.path.parent / name for name in sorted(self.external))]


def read_graph(path: Path) -> OnnxGraph:
    """Read the interface of an ONNX file; raise if the file is damaged or quantized."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            graph = _read_model(path, data)
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(
            f"{printable_path(path)} is not a complete ONNX file ({describe_error(error)}). "
            "Download or export it again."
        ) from error
    return graph


def _read_model(path: Path, data: mmap.mmap) -> OnnxGraph:
    graph, weights = OnnxGraph(path), set()
    for number, start, stop in _graph_fields(data):
        if number == _GRAPH_INPUT:
            graph.inputs.update([_read_value(data, start, stop)])
        elif number == _GRAPH_OUTPUT:
            graph.outputs.update([_read_value(data, start, stop)])
        elif number == _GRAPH_NODE:
            _check_operator(path, _text(data, _child(data, start, stop, _NODE_OPERATOR)))
        elif number == _GRAPH_INITIALIZER:
            weights.add(_read_initializer(data, start, stop, graph.external))
    if not graph.inputs or not graph.outputs:
        raise ValueError("it has no inputs or no outputs")
    # Old files list weights among the inputs.
    graph.inputs = {name: kind for name, kind in graph.inputs.items() if name not in weights}
    return graph


def _graph_fields(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    parts = {number: (start, stop) for number, start, stop in _fields(data, 0, len(data))}
    if _MODEL_GRAPH not in parts or _MODEL_OPERATORS not in parts:
        raise ValueError("it has no graph, or its end is missing")
    yield from _fields(data, *parts[_MODEL_GRAPH])


def _fields(data: mmap.mmap, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number of every field, and where its bytes (or its varint) start and stop."""
    while start < stop:
        key, start = _varint(data, start)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            length, start = _varint(data, start)
            end = start + length
        elif kind == _VARINT:
            _, end = _varint(data, start)
        elif kind in (_FIXED32, _FIXED64):
            end = start + (4 if kind == _FIXED32 else 8)
        else:
            raise ValueError("it is damaged, or no ONNX file")
        if end > stop:
            raise ValueError("its end is missing")
        yield number, start, end
        start = end


def _varint(data: mmap.mmap, start: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, start
    raise ValueError("it is damaged, or no ONNX file")


def _child(data: mmap.mmap, start: int, stop: int, *numbers: int) -> tuple[int, int]:
    """Return where the first field with a number is, going one level down per number."""
    for wanted in numbers:
        found = (part for part in _fields(data, start, stop) if part[0] == wanted)
        _, start, stop = next(found, (wanted, stop, stop))
    return start, stop


def _text(data: mmap.mmap, span: tuple[int, int]) -> str:
    return data[span[0] : span[1]].decode("utf-8", "replace")


def _read_value(data: mmap.mmap, start: int, stop: int) -> tuple[str, TensorType]:
    name = _text(data, _child(data, start, stop, _VALUE_NAME))
    tensor = _child(data, start, stop, _VALUE_TYPE, _TYPE_TENSOR)
    element = _child(data, *tensor, _TENSOR_ELEMENT)
    number = _varint(data, element[0])[0] if element[1] > element[0] else 0
    dims = [
        _child(data, first, last, _DIM_VALUE)
        for kind, first, last in _fields(data, *_child(data, *tensor, _TENSOR_SHAPE))
        if kind == _SHAPE_DIM
    ]
    shape = (_varint(data, first)[0] if last > first else None for first, last in dims)
    # Some exporters write an unknown length as 0.
    known = tuple(length or None for length in shape)
    return name, TensorType(np.dtype(_ELEMENTS.get(number, np.object_)), known)


def _read_initializer(data: mmap.mmap, start: int, stop: int, external: set[str]) -> str:
    name = ""
    for number, first, last in _fields(data, start, stop):
        if number == _TENSOR_NAME:
            name = _text(data, (first, last))
        elif (
            number == _TENSOR_EXTERNAL
            and _text(data, _child(data, first, last, _ENTRY_KEY)) == "location"
        ):
            external.add(_text(data, _child(data, first, last, _ENTRY_VALUE)))
    return name


def _check_operator(path: Path, operator: str) -> None:
    if any(part in operator for part in _QUANTIZED):
        raise ModelError(
            f"{printable_path(path)} is quantized ({operator}), which changes its vectors visibly: "
            "use the export in float32 or float16."
        )


def check_external(graph: OnnxGraph) -> None:
    """Raise if a graph's external weights are missing or outside of its folder."""
    for name in sorted(graph.external):
        paths = (PurePosixPath(name), PureWindowsPath(name))
        if any(path.is_absolute() or path.drive or ".." in path.parts for path in paths):
            raise ModelError(
                f"{printable_path(graph.path)} asks for weights outside of its folder "
                f"({printable_path(name)}), which is not safe: get the model from another source."
            )
        if not (graph.path.parent / name).is_file():
            raise ModelError(
                f"{printable_path(graph.path)} needs the file {printable_path(name)} beside it. "
                "Download or export the model again."
            )
