"""Where a torch model runs, how precisely, and how much of the input at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from nouncut.compute.checks import check_choice

PRECISIONS = ("auto", "float32", "float16", "bfloat16")
# What allocators say where torch has no exception of its own (MPS, the CPU).
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")

Result = TypeVar("Result")


def choose_device(device: str) -> torch.device:
    """Return the device that a name stands for."""
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
        raise ValueError(
            f"device must be 'auto', 'cuda', 'mps' or 'cpu'; got {device!r}."
        ) from error
    if not available.get(chosen.type, True):
        raise ValueError(f"device={device!r} is not available here: pass device='auto' or 'cpu'.")
    return chosen


def choose_precision(precision: str, device: torch.device) -> str:
    """Return the floating type that matrix products run in."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "auto":
        return "float16" if device.type == "cuda" else "float32"
    if precision != "float32" and device.type != "cuda":
        raise ValueError(
            f"precision={precision!r} needs a CUDA device, but the model runs on {device.type}: "
            "pass precision='auto'."
        )
    return precision


def mixed_precision(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Let torch run matrix products in a shorter type where that is safe."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, precision))


@dataclass
class BatchSize:
    """How much goes through a model at once; shrinks for good when memory runs out."""

    limit: int


def run_in_batches(
    function: Callable[[int, int], Result], n: int, size: BatchSize, cost: int = 1
) -> list[Result]:
    """Call a function on consecutive ranges, smaller ones after running out of memory."""
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
                raise MemoryError(
                    "The model does not fit into memory even with one input at a time: pass "
                    "device='cpu' or choose a smaller model."
                ) from error
        # Only here, with the error and the tensors it kept alive gone, is memory free again.
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
