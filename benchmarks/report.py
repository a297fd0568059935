"""The report of many images: time, memory, size of the page, and frame rates in a browser.

Run it with ``python benchmarks/report.py [N_IMAGES ...]``. It makes runs of photograph-sized JPEG
files, builds each page in a new process, and opens it in Chromium without a graphics card
(``apt install chromium``, or ``NOUNCUT_CHROMIUM=path``; ``pip install playwright``).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from _blobs import browser_page, seconds_until_map, write_blobs
from _setting import print_result, setting
from nouncut.images.hashing import content_hash
from nouncut.report.write import write_report
from nouncut.runs.run import open_run
from nouncut.runs.tables import images_table

SIZE = (500, 375)
N_PICTURES = 50
N_FRAMES = 150
# Drags the map in a curve, one step per frame, and returns the times of the frames.
PAN = f"""async () => {{
  const canvas = document.getElementById("map-canvas");
  const box = canvas.getBoundingClientRect();
  const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {{
    pointerId: 1, pointerType: "mouse", button: 0, bubbles: true,
    clientX: box.left + x, clientY: box.top + y,
  }}));
  canvas.setPointerCapture = () => {{}};
  send("pointerdown", 300, 300);
  const times = [];
  for (let frame = 0; frame < {N_FRAMES}; frame++) {{
    send("pointermove", 300 + 200 * Math.sin(frame / 12), 300 + 150 * Math.cos(frame / 9));
    times.push(await new Promise(requestAnimationFrame));
  }}
  send("pointercancel", 300, 300);
  return times;
}}"""


def make_photographs(folder: Path, count: int) -> list[Path]:
    """Write JPEG files of smooth random pictures; all files differ, so each is read and shrunk."""
    rng = np.random.default_rng(0)
    contents = []
    for _ in range(N_PICTURES):
        coarse = Image.fromarray(rng.integers(0, 256, (15, 20, 3), dtype=np.uint8))
        content = BytesIO()
        coarse.resize(SIZE, Image.Resampling.BICUBIC).save(content, "JPEG", quality=90)
        contents.append(content.getvalue())
    paths = [folder / f"{n // 1000:03}" / f"picture {n:06}.jpg" for n in range(count)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Readers ignore bytes after the end of the image.
        path.write_bytes(contents[number % N_PICTURES] + str(number).encode())
    return paths


def build(directory: Path) -> dict[str, float]:
    """Build the page twice, the second time from thumbnails that are there."""
    run = open_run(directory)
    run.assignments, run.images  # noqa: B018
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, processor_times = [], []
    for _ in range(2):
        start, processor_start = time.perf_counter(), time.process_time()
        write_report(run)
        times.append(time.perf_counter() - start)
        processor_times.append(time.process_time() - processor_start)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "build (s)": times[0],
        "on one core (s)": processor_times[0],
        "again (s)": times[1],
        "more memory (MB)": (after - before) / 1024,
        "page (MB)": run.report.stat().st_size / 1e6,
    }


def look(page: Page, report: Path) -> dict[str, float]:
    """Open a page, and measure the frame rates while its map moves."""
    drawn = seconds_until_map(page, report)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    rates = {}
    for label, zoom in (("whole map", 1), ("zoomed in", 3)):
        page.evaluate(f"camera.fit(), camera.zoomAt(600, 300, {zoom}), map.redraw()")
        page.wait_for_timeout(500)
        times = np.diff(page.evaluate(PAN))
        rates[f"{label} (frames/s)"] = float(1000 / times.mean())
        rates[f"{label}, slowest of 20 (frames/s)"] = float(1000 / np.quantile(times, 0.95))
    return {"first paint (s)": paint / 1000, "map drawn (s)": drawn} | rates


def measure(n_images: int, n_clusters: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = make_photographs(Path(folder, "photographs"), n_images)
        directory = Path(folder, "run")
        images = images_table(paths, hashes=[content_hash(path) for path in paths])
        source = {"source": [str(paths[0].parent.parent)], "source_kind": "images"}
        write_blobs(directory, images, n_clusters, source)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            built = pool.apply(build, (directory,))
        with browser_page() as page:
            seen = look(page, directory / "report.html")
    return {"images": n_images, "clusters": n_clusters} | built | seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("n_images", type=int, nargs="*", default=[1000, 10_000, 50_000])
    parser.add_argument("--n-clusters", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(n_images, arguments.n_clusters) for n_images in arguments.n_images]
    print_result(setting("pillow", "playwright") | {"report": rows}, arguments.json)


if __name__ == "__main__":
    main()
