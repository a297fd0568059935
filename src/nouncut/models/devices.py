"""Device, precision and batch size of a torch model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from nouncut.compute.checks import check_choice
from nouncut.errors import ModelError, ParameterError

PRECISIONS = ("auto", "float32", "float16", "bfloat16")
# MPS and the CPU have no exception type of their own, only these messages.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")

Result = TypeVar("Result")


def choose_device(device: str) -> torch.device:
    """Return the device of a name; "auto" is the first of CUDA, MPS and the CPU that is there."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ParameterError(
            f"`device` must be 'auto', 'cuda', 'mps' or 'cpu'; got {device!r}."
        ) from error
    if not available.get(chosen.type, True):
        raise ParameterError(
            f"`device` is {device!r}, which this machine does not have: use 'auto' or 'cpu'."
        )
    return chosen


def choose_precision(precision: str, device: torch.device) -> str:
    """Return the floating type of matrix products; "auto" is float16 on CUDA, else float32."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "auto":
        return "float16" if device.type == "cuda" else "float32"
    if precision != "float32" and device.type != "cuda":
        raise ParameterError(
            f"`precision` is {precision!r}, which needs a CUDA device, but the model runs on "
            f"{device.type}: use 'auto'."
        )
    return precision


def mixed_precision(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Let torch run matrix products in half precision where that is safe."""
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
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def _empty_cache() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
