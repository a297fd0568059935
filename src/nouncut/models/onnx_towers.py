"""Running one graph of an ONNX export: its session, its inputs and its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ModelError, describe_error, printable_path
from nouncut.models.onnx_graphs import OnnxGraph, check_external, read_graph
from nouncut.models.runtime import open_session

_OUT_OF_MEMORY = ("failed to allocate memory", "bad_alloc", "bad allocation")


class OnnxTower:
    """One graph, loaded when it first runs.

    Batches run at the same time, each on one thread, so that vectors do not depend on the number
    of threads.
    """

    def __init__(self, path: Path, outputs: Sequence[str]) -> None:
        self.graph = read_graph(path)
        check_external(self.graph)
        self.output = _choose_output(self.graph, outputs)
        self._lock = Lock()

    @property
    def dim(self) -> int | None:
        """Length of the vectors, if the graph says it."""
        return self.graph.outputs[self.output].shape[-1]

    def fixed_batch(self, name: str) -> int | None:
        """Return the batch size that an input of the graph asks for, if it is fixed."""
        return self.graph.inputs[name].shape[0]
