"""Open image files, each in a fork of this process, and print what each of them costs.

Seconds are those of an idle machine: a harmless image that is opened before each file says how much
slower this one is.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from PIL import Image

from nouncut.compute.memory import peak_memory
from nouncut.errors import ImageError
from nouncut.images import formats
from nouncut.images.open import open_image, open_image_bytes

# Twice the input of the embedded model, as for encoding.
_MIN_SIDE = 520
_PATIENCE = 60
# The side of the harmless image, and the pixels that an idle core (AMD EPYC) opens per second.
_SIDE = 2000
_USUAL_PACE = 9e7


def load_readers() -> None:
    """Import what readers need, which is not part of what a file costs."""
    for one in formats._FORMATS:
        formats.load_reader(one)


def slowdown() -> float:
    """Return how many times slower than usual a harmless image is opened now; at least 1."""
    content = io.BytesIO()
    Image.new("I;16", (_SIDE, _SIDE)).save(content, "PNG")
    start = time.process_time()
    open_image_bytes(content.getvalue(), "harmless.png")
    return max(1.0, (time.process_time() - start) * _USUAL_PACE / _SIDE**2)


def measure(path: str) -> dict[str, Any]:
    pace = slowdown()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (_PATIENCE, _PATIENCE))
        signal.alarm(4 * _PATIENCE)
        os.write(write, json.dumps(cost(path, pace)).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    died = {"megabytes": 0, "seconds": 0, "result": f"died with status {status}"}
    return {"name": Path(path).name, **(json.loads(answer) if answer else died)}


def cost(path: str, pace: float) -> dict[str, Any]:
    before, start = peak_memory() or 0, time.process_time()
    try:
        result = f"opened: {open_image(path, min_side=_MIN_SIDE).size}"
    except ImageError as error:
        result = error.reason
    seconds = (time.process_time() - start) / pace
    return {
        "megabytes": ((peak_memory() or 0) - before) / 1e6,
        "seconds": seconds,
        "result": result,
    }


if __name__ == "__main__":
    load_readers()
    for each in sys.argv[1:]:
        print(json.dumps(measure(each)), flush=True)
