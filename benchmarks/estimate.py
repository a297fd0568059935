"""The announced time and memory of runs beside the measured ones.

Every case is a process of the installed command: first runs on made photographs with an empty
cache, the same with another number of groups (nothing to encode), and files of ready features.

``--calibrate`` prints the constants of ``nouncut.runs.estimate`` that suit this machine best: the
work of every kind, by least squares over the runs with nothing to encode, and the bytes that
make the median ratio of memory one. Run it when nothing else is running.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.optimize import nnls

from _setting import print_result, setting
from nouncut.runs.estimate import BYTES_ONCE, WORK

COMMAND = Path(sys.executable).with_name("nouncut")
SIDES = (640, 480)
MAKE_FEATURES = """
import sys
import numpy as np
from nouncut.paper.synthetic import make_clip_like
data = make_clip_like(
    int(sys.argv[2]), 40, n_nouns=10, n_prompts=1, separation=0.3, random_state=0
)
np.save(sys.argv[1], data.features.astype(np.float32))
"""


def make_photographs(folder: Path, count: int) -> None:
    """Write JPEG files with as much detail as photographs: noise of several sizes."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        picture = np.zeros((SIDES[1], SIDES[0], 3), np.float32)
        for cells in (4, 16, 64):
            noise = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
            layer = Image.fromarray(noise).resize(SIDES, Image.Resampling.BICUBIC)
            picture += np.asarray(layer, np.float32) / 3
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{number:05}.jpg", quality=90)


def make_features(path: Path, count: int) -> None:
    """Write features in a process of its own: a child inherits the peak memory of its parent."""
    subprocess.run([sys.executable, "-c", MAKE_FEATURES, str(path), str(count)], check=True)


def run_command(arguments: list[str], cache: Path) -> dict[str, Any]:
    """Run the command and compare its announcement with its time and memory."""
    environment = os.environ | {"NOUNCUT_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    command = [str(COMMAND), "cluster", *arguments, "--json"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        end = time.time()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command} ended with {process.returncode}")
        estimate = json.load(out)["estimate"]
    announced = datetime.fromisoformat(estimate["announced"]).timestamp()
    return {"estimate": estimate, "seconds": end - announced, "bytes": usage.ru_maxrss * 1024}


def shown(case: str, run: dict[str, Any]) -> dict[str, Any]:
    seconds, n_bytes = run["estimate"]["seconds"], run["estimate"]["n_bytes"]
    return {
        "case": case,
        "announced (s)": seconds,
        "measured (s)": run["seconds"],
        "time: measured / announced": run["seconds"] / seconds,
        "announced (MB)": n_bytes / 1e6,
        "measured (MB)": run["bytes"] / 1e6,
        "memory: measured / announced": run["bytes"] / n_bytes,
    }


def image_runs(count: int, folder: Path) -> dict[str, dict[str, Any]]:
    photographs, cache = folder / f"photographs-{count}", folder / f"cache-{count}"
    make_photographs(photographs, count)
    runs = {}
    for case, options in (("first run", []), ("another k", ["-k", "8"])):
        output = str(folder / f"run-{count}-{len(options)}")
        arguments = [str(photographs), "--model", "mini", *options, "--output", output]
        runs[f"{count:,} images, {case}"] = run_command(arguments, cache)
    return runs


def feature_runs(count: int, folder: Path) -> dict[str, dict[str, Any]]:
    features = folder / f"features-{count}.npy"
    make_features(features, count)
    runs = {}
    for case, options in (("auto", []), ("k given", ["-k", "40"])):
        output = str(folder / f"features-{count}-{len(options)}")
        arguments = [str(features), *options, "--output", output]
        runs[f"{count:,} rows, {case}"] = run_command(arguments, folder / "cache")
    return runs


def calibrated(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the constants of the estimate that suit these runs best."""
    known = [run for run in runs if not run["estimate"]["encoding_seconds"]]
    # Ratios are what should be right: every run counts alike.
    scale = [run["seconds"] * run["estimate"]["multiplications_per_second"] for run in known]
    amounts = [[run["estimate"]["amounts"][kind] for kind in WORK] for run in known]
    work, _ = nnls(np.array(amounts) / np.array(scale)[:, None], np.ones(len(known)))
    missing = [run["bytes"] - run["estimate"]["n_bytes"] for run in runs]
    return dict(zip(WORK, work.tolist(), strict=True)) | {
        "BYTES_ONCE (MiB)": (BYTES_ONCE + float(np.median(missing))) / 2**20
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", nargs="*", type=int, default=[50, 600, 2000])
    parser.add_argument("--rows", nargs="*", type=int, default=[2000, 20_000, 100_000])
    parser.add_argument("--calibrate", action="store_true", help="print constants")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    runs: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in arguments.images:
            runs |= image_runs(count, Path(folder))
        for count in arguments.rows:
            runs |= feature_runs(count, Path(folder))
    rows = [shown(case, run) for case, run in runs.items()]
    print_result(setting("scipy", "pillow") | {"Announced and measured": rows}, arguments.json)
    if arguments.calibrate:
        for name, value in calibrated(list(runs.values())).items():
            print(f"{name}: {value:.3g}")


if __name__ == "__main__":
    main()
