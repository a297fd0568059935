"""Device, precision and batch size of a torch model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.checks import check_choice
from nouncut.compute.memory import free_address_space
from nouncut.compute.rows import unit_rows
from nouncut.errors import LowMemoryError, ModelError, ParameterError

if TYPE_CHECKING:
    import torch

PRECISIONS = ("auto", "float32", "float16", "bfloat16")
_TORCH_SPACE = 0.9e9
# MPS and the CPU have no exception type of their own, only these messages.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")

Result = TypeVar("Result")


def _check_address_space() -> None:
    """Raise if torch would not fit; it would end the process instead of raising an error."""
    space = free_address_space()
    if space is not None and space < _TORCH_SPACE and "torch" not in sys.modules:
        raise LowMemoryError(
            f"This model needs torch, which maps {_TORCH_SPACE / 1e9} GB of memory, but the "
            f"limit on address space leaves only {space / 1e9:.1f} GB. Raise it (ulimit -v "
            "unlimited), or choose 'mini' as the `model`."
        )


def choose_device(device: str) -> torch.device:
    """Return the device of a name."""
    _check_address_space()
    import torch

    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ParameterError(
            f"`device` must be 'auto', 'cuda', 'mps' or 'cpu'; got {device!r}."
        ) from error
    if not available.get(chosen.type, True):
        raise ParameterError(
            f"The model was to run on {device!r}, which this machine or its torch does not have: "
            "use 'cpu' as `device`."
        )
    return chosen


def choose_precision(precision: str, device: str) -> str:
    """Return the floating type of matrix products; "auto" is float16 on CUDA, else float32."""
    check_choice("precision", precision, PRECISIONS)
    is_cuda = device.startswith("cuda")
    if precision == "auto":
        return "float16" if is_cuda else "float32"
    if precision != "float32" and not is_cuda:
        raise ParameterError(
            f"`precision` is {precision!r}, which needs a CUDA device, but the model runs on "
            f"{device}: use 'auto'."
        )
    return precision


def run_model(
    function: Callable[[], torch.Tensor], device: torch.device, precision: str
) -> NDArray[np.float32]:
    """Return unit rows; compute them again in float32 if half precision overflows."""
    import torch

    with torch.inference_mode():
        with mixed_precision(device, precision):
            features = function()
        if precision != "float32" and not features.isfinite().all():
            features = function()
        return unit_rows(features.float().cpu().numpy())


def mixed_precision(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Let torch run matrix products in half precision where that is safe."""
    import torch

    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, precision))


@dataclass
class BatchSize:
    """The batch size of a model; it stays smaller once memory has run out."""

    limit: int


def run_in_batches(
    function: Callable[[int, int], Result], n: int, size: BatchSize, cost: int = 1
) -> list[Result]:
    """Call a function on consecutive ranges of 0 to n; halve them when memory runs out."""
    _check_address_space()
    results: list[Result] = []
    start = 0
    while start < n:
        stop = min(n, start + max(1, size.limit // cost))
        try:
            results.append(function(start, stop))
            start = stop
            continue
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            if stop - start == 1:
                raise ModelError(
                    "The model does not fit into memory even with one input at a time: choose "
                    "a smaller `model`, or 'cpu' as the device."
                ) from error
        # Not inside `except`: the error still holds tensors there.
        _empty_cache()
        size.limit = max(1, (stop - start) * cost // 2)
    return results


def _is_out_of_memory(error: BaseException) -> bool:
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def _empty_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
