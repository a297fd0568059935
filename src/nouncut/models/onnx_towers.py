"""Running one graph of an ONNX export: its session, its inputs and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ModelError, describe_error, printable_path
from nouncut.models.onnx_graphs import OnnxGraph, TensorType, check_external, read_graph
from nouncut.models.runtime import open_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# Inputs that are known by name; the others are the pixels and the tokens, whatever their names.
_EXTRA_INPUTS = ("attention_mask", "token_type_ids", "pixel_attention_mask", "spatial_shapes")
_OUT_OF_MEMORY = ("failed to allocate memory", "bad_alloc", "bad allocation")

Feeds = Mapping[str, NDArray[Any]]


class LazySession:
    """A graph that is loaded when it first runs."""

    def __init__(self, path: Path) -> None:
        self.graph = read_graph(path)
        check_external(self.graph)

    @cached_property
    def loaded(self) -> InferenceSession:
        """The session of ONNX Runtime."""
        return open_session(self.graph.path)


class OnnxTower:
    """A graph that turns batches of pixels or tokens into vectors.

    A graph for both is given the smallest input for the other side: `image_size` pixels, one token.
    """

    def __init__(
        self,
        session: LazySession,
        role: str,
        outputs: Sequence[str],
        image_size: tuple[int, int] | None = None,
    ) -> None:
        self.session = session
        self.graph = session.graph
        self._image_size = image_size
        self._names = _input_names(self.graph)
        if role not in self._names:
            raise _unknown(self.graph, f"no input for {role}")
        self._output = _choose_output(self.graph, outputs)
        self._role = role

    @property
    def dim(self) -> int | None:
        """Length of the vectors, if the graph states it."""
        shape = self.graph.outputs[self._output].shape
        return shape[1] if len(shape) == 4 else shape[-1] if shape else None

    @property
    def batch_size(self) -> int | None:
        """Number of rows of a batch, if the graph fixes it."""
        return self.input(self._role).shape[0]

    def has_input(self, role: str) -> bool:
        """Tell whether the graph takes an input such as "attention_mask"."""
        return role in self._names

    def input(self, role: str) -> TensorType:
        """Return the type of an input."""
        return self.graph.inputs[self._names[role]]

    def run_batches(self, batches: Sequence[Feeds]) -> list[NDArray[np.float32]]:
        """Return the vectors of every batch; several run at once, each on one thread."""
        _ = self.session.loaded  # once, not by every thread
        return run_tasks(self.run, batches, count_threads(-1))

    def run(self, batch: Feeds) -> NDArray[np.float32]:
        """Return the vectors of one batch; halve it when memory runs out."""
        n = len(batch[self._role])
        try:
            outputs = self.session.loaded.run([self._output], self._feeds(batch))
            return _pooled(np.asarray(outputs[0]))[:n].astype(np.float32, copy=False)
        except Exception as error:  # the runtime has error types of its own
            if not any(words in str(error).lower() for words in _OUT_OF_MEMORY):
                raise ModelError(
                    f"{printable_path(self.graph.path)} cannot be run by ONNX Runtime "
                    f"({describe_error(error)}). Download or export the model again."
                ) from error
            if n == 1 or self.batch_size:
                raise ModelError(
                    "The model does not fit into memory even with one input at a time: choose a "
                    "smaller `model`."
                ) from error
        halves = (slice(0, n // 2), slice(n // 2, n))
        parts = [{role: array[half] for role, array in batch.items()} for half in halves]
        return np.concatenate([self.run(part) for part in parts])

    def _feeds(self, batch: Feeds) -> dict[str, NDArray[Any]]:
        """Return an array for every input of the graph, in its type."""
        feeds = {}
        for role, name in self._names.items():
            kind = self.graph.inputs[name]
            array = batch[role] if role in batch else self._blank(kind)
            missing = (kind.shape[0] or 0) - len(array) if role in batch else 0
            if missing > 0:
                array = np.concatenate([array, np.repeat(array[-1:], missing, axis=0)])
            feeds[name] = np.ascontiguousarray(array, dtype=kind.dtype)
        return feeds

    def _blank(self, kind: TensorType) -> NDArray[Any]:
        shape = [length or 1 for length in kind.shape]
        if len(shape) == 4 and self._image_size:
            shape[1:] = 3, *self._image_size
        return np.ones(shape, dtype=kind.dtype)


def _input_names(graph: OnnxGraph) -> dict[str, str]:
    """Return the names of a graph's inputs by their roles."""
    names: dict[str, str] = {}
    for name, (dtype, _) in graph.inputs.items():
        kind = {"f": "pixels", "i": "tokens"}.get(dtype.kind)
        role = name if name in _EXTRA_INPUTS else kind
        if role is None or role in names:
            raise _unknown(graph, f"an input {name!r} of type {dtype}")
        names[role] = name
    return names


def _choose_output(graph: OnnxGraph, wanted: Sequence[str]) -> str:
    for name in wanted:
        if name in graph.outputs:
            return name
    # One vector per row cannot be mistaken.
    vectors = [name for name, (_, shape) in graph.outputs.items() if len(shape) == 2]
    if len(vectors) == 1 and len(graph.outputs) == 1:
        return vectors[0]
    found = ", ".join(map(repr, graph.outputs))
    raise _unknown(graph, f"the outputs {found}, of which none is {' or '.join(wanted)}")


def _unknown(graph: OnnxGraph, problem: str) -> ModelError:
    return ModelError(
        f"{printable_path(graph.path)} has {problem}, which nouncut does not know: use an export "
        "with 'pixel_values' and 'image_embeds', 'input_ids' and 'text_embeds'."
    )


def _pooled(output: NDArray[Any]) -> NDArray[Any]:
    """Return one vector per row: of several tokens, the first one."""
    return output[:, 0] if output.ndim == 3 else output.reshape(len(output), -1)
