"""Tasks that workers run in the tests; workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from distributed import get_worker


def double(storage, number, seconds=0.0):
    time.sleep(seconds)
    storage.write(f"doubled/{number}.npy", np.full(3, 2 * number))
    return {"sum": 6 * number}


def die_once(storage, number, marker):
    """Kill the worker at the first attempt, after a file was written."""
    storage.write(f"doubled/{number}.npy", np.full(3, 2 * number))
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"sum": 6 * number}


def fail_until(storage, marker):
    if not Path(marker).exists():
        raise RuntimeError("the disk is away")
    return {}


def keep_product(storage, block, partition):
    storage.write(f"product/{partition}.npy", block)
    return {}


def say_worker(storage, block):
    return {"address": get_worker().address}


def hang_once(marker):
    """Hang at the first attempt, until the worker is killed."""
    if not Path(marker).exists():
        Path(marker).touch()
        time.sleep(600)
    return np.ones(3)
