"""Batches that grow, so that a short trial tells how long all of them will take."""

from __future__ import annotations

import time
from collections.abc import Callable


def batch_ends(n_items: int, first: int, largest: int) -> list[int]:
    """Return where batches end whose size doubles from `first` to `largest`."""
    ends, size = [0], first
    while ends[-1] < n_items:
        ends.append(min(ends[-1] + size, n_items))
        size = min(2 * size, largest)
    return ends[1:]


def seconds_per_item(
    run_batch: Callable[[], int], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Run batches for some seconds after the first, which loads the model; return their speed.

    `run_batch` returns the number of items in the batch that it ran, and 0 if none was left.
    """
    if not run_batch():
        return 0.0
    start, n_items = clock(), 0
    while clock() - start < seconds and (done := run_batch()):
        n_items += done
    return (clock() - start) / n_items if n_items else 0.0
