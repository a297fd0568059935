"""Networks in ONNX Runtime, on the CPU.

A session uses one thread. Several small batches at once keep all cores busy, and no result depends
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ModelError, describe_error

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# Only errors are shown; warnings are about the order of initialisers and the like.
_ERRORS_ONLY = 3


def open_session(
    model: Path | bytes, weights: Mapping[str, NDArray[Any]] | None = None
) -> InferenceSession:
    """Load a network; `weights` are those that the graph declares without holding them.

    The arrays must live as long as the session, which does not copy them.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has error types of its own
        name = "The embedded network" if isinstance(model, bytes) else repr(str(model))
        raise ModelError(
            f"{name} cannot be loaded by ONNX Runtime ({describe_error(error)}). Install or "
            "download the model again."
        ) from error


def run_in_parallel(
    function: Callable[[int, int], NDArray[Any]], shape: tuple[int, int], batch_size: int
) -> NDArray[np.float32]:
    """Fill an array of this shape by calling a function on ranges of rows, several at once."""
    out = np.empty(shape, dtype=np.float32)

    def fill(start: int) -> None:
        stop = min(len(out), start + batch_size)
        out[start:stop] = function(start, stop)

    run_tasks(fill, range(0, len(out), batch_size), count_threads(-1))
    return out
