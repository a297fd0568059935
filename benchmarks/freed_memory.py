"""What it costs that a worker returns freed memory to the system, as Dask's workers do on Linux.

``python benchmarks/freed_memory.py`` multiplies blocks of features as the search for neighbours
does, in a process with Dask's setting of the allocator, and in one with that of local workers.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from _setting import setting

# What Dask sets for its workers, and what `nouncut.distributed.client` sets for local ones.
SETTINGS = {
    "returned (Dask)": {"MALLOC_TRIM_THRESHOLD_": "65536"},
    "kept (local workers)": {
        "MALLOC_TRIM_THRESHOLD_": str(2**24),
        "MALLOC_MMAP_THRESHOLD_": str(2**22),
    },
}
BLOCK, WIDTH, TIMES, REPEATS = 512, 128, 300, 5


def measure() -> float:
    """Return milliseconds of processor time per block."""
    features = np.random.default_rng(0).normal(size=(8 * BLOCK, WIDTH)).astype(np.float32)
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        for number in range(TIMES):
            first = number % 8 * BLOCK
            values = features[:BLOCK] @ features[first : first + BLOCK].T
            np.count_nonzero(values >= values[:, :1])
        found.append((time.process_time() - start) / TIMES * 1e3)
    return statistics.median(found)


def main() -> None:
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
        return
    result = {}
    for name, variables in SETTINGS.items():
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | variables
        command = [sys.executable, __file__, "--measure"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        result[name] = json.loads(done.stdout)
    returned, kept = result.values()
    print("| freed memory | ms per block |\n|---|---|")
    for name, milliseconds in result.items():
        print(f"| {name} | {milliseconds:.2f} |")
    print(f"\nratio {kept / returned:.2f}, {setting()}")


if __name__ == "__main__":
    main()
