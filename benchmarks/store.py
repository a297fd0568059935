"""Rows per second and disk space of the feature store.

Run it with ``python benchmarks/store.py [ROWS] [DIM]``. Every store is filled in small and in
large batches, then read in insertion order and in random order. `--store MODULE:CLASS` compares
further classes with the interface of `FeatureStore`. The files are in memory when they are read,
because they were just written: the numbers say what the store costs, not the drive.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting

READ_BATCH = 4096
SPACE = "benchmark"


def make_keys(n_rows: int) -> list[str]:
    """Return keys that look like content hashes."""
    return [hashlib.blake2b(str(row).encode(), digest_size=20).hexdigest() for row in range(n_rows)]


def batches(n_rows: int, size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, n_rows, size):
        yield np.arange(start, min(n_rows, start + size))


def rows_of(numbers: NDArray[np.int64], pattern: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of shape (len(numbers), dim); the first column identifies the row."""
    rows = pattern[: len(numbers)].copy()
    rows[:, 0] = numbers
    return rows


def measure(
    make_store: Callable[[Path], Any],
    keys: list[str],
    pattern: NDArray[np.float32],
    batch: int,
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Fill one store in batches of one size and read it; return rows per second."""
    shuffled = np.random.default_rng(0).permutation(len(keys))

    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder, "store"))

        def append() -> None:
            for numbers in batches(len(keys), batch):
                store.append(SPACE, [keys[row] for row in numbers], rows_of(numbers, pattern))

        def read(order: NDArray[np.int64]) -> None:
            for part in batches(len(keys), READ_BATCH):
                rows = store.read(SPACE, [keys[row] for row in order[part]])
                assert np.array_equal(rows[:, 0], order[part].astype(np.float32))

        def ask() -> None:
            assert store.missing(SPACE, keys) == []

        def rows_per_second(work: Callable[[], None]) -> int:
            start = clock()
            work()
            return round(len(keys) / (clock() - start))

        return {
            "append": rows_per_second(append),
            "read in order": rows_per_second(lambda: read(np.arange(len(keys)))),
            "read shuffled": rows_per_second(lambda: read(shuffled)),
            "missing": rows_per_second(ask),
            "disk MB": round(store.size() / 1e6),
        }


def load_class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=100_000, help="rows (default 100000)")
    parser.add_argument("dim", type=int, nargs="?", default=512, help="dimension (default 512)")
    parser.add_argument(
        "--store",
        action="append",
        dest="stores",
        metavar="MODULE:CLASS",
        help="a class to measure; may be repeated (default: the store of nouncut)",
    )
    parser.add_argument(
        "--batch",
        action="append",
        dest="batches",
        type=int,
        metavar="ROWS",
        help="rows per append; may be repeated (default: 64 and 8192)",
    )
    parser.add_argument(
        "--cpu", action="store_true", help="count processor seconds, for a machine that is shared"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    append_batches = arguments.batches or [64, 8192]
    keys = make_keys(arguments.rows)
    rng = np.random.default_rng(0)
    pattern = rng.normal(size=(max(append_batches), arguments.dim)).astype(np.float32)
    clock = time.process_time if arguments.cpu else time.perf_counter
    unit = "processor second" if arguments.cpu else "second"
    result = setting()
    result[f"rows per {unit}, {arguments.rows:,} rows of {arguments.dim} float32"] = [
        {"store": name, "batch": batch} | measure(load_class(name), keys, pattern, batch, clock)
        for batch in append_batches
        for name in arguments.stores or ["nouncut.store.store:FeatureStore"]
    ]
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
