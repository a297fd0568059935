"""The map of the report: how fast it moves with 10,000, 100,000 and 1,000,000 points.

Run it with ``python benchmarks/map.py [N_POINTS ...]``. It writes reports of made points in blobs,
with a tree above the clusters, and moves their maps in Chromium without a graphics card
(``apt install chromium``, or ``NOUNCUT_CHROMIUM=path``; ``pip install playwright``). The pictures
that stand for dots where there is space are made in the page, so no image file is read.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from _blobs import browser_page, seconds_until_map, write_blobs
from _setting import print_result, setting
from nouncut.report.write import write_report
from nouncut.runs.tables import images_table

# Moves the map one step per frame, and returns the times between the frames.
MOVE = """async (kind) => {
  const canvas = document.getElementById("map-canvas");
  const box = canvas.getBoundingClientRect();
  const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, pointerType: "mouse", button: 0, bubbles: true, movementX: 1,
    clientX: box.left + x, clientY: box.top + y,
  }));
  canvas.setPointerCapture = () => {};
  const steps = {
    pan: (n) => send("pointermove", 300 + 200 * Math.sin(n / 12), 300 + 150 * Math.cos(n / 9)),
    zoom: (n) => canvas.dispatchEvent(new WheelEvent("wheel", {
      deltaY: n % 60 < 30 ? -60 : 60, cancelable: true,
      clientX: box.left + 500, clientY: box.top + 250,
    })),
  };
  send("pointermove", 301, 300);
  if (kind === "pan") send("pointerdown", 300, 300);
  const times = [];
  for (let n = 0; n < 120; n++) {
    steps[kind](n);
    times.push(await new Promise(requestAnimationFrame));
  }
  send("pointercancel", 300, 300);
  return times.slice(1).map((time, n) => time - times[n]);
}"""
HOVER = """() => {
  const times = [];
  for (let n = 0; n < 200; n++) {
    const start = performance.now();
    points.at(camera.view(), (n * 97) % 1100, (n * 61) % 500, 14);
    times.push(performance.now() - start);
  }
  return times;
}"""
LASSO = """() => {
  const line = Array.from({ length: 120 }, (_, n) => [
    550 + 300 * Math.cos(n / 19) * (1 + 0.1 * (n % 2)), 280 + 200 * Math.sin(n / 19),
  ]);
  const start = performance.now();
  selection.set(points.inside(camera.view(), line));
  const time = performance.now() - start;
  return [time, selection.rows().length];
}"""
# Rows of features have no pictures, so the page gets some: fifty plain ones.
GIVE_PICTURES = """() => {
  const pictures = Array.from({ length: 50 }, (_, n) => {
    const canvas = element("canvas", { width: 160, height: 120 });
    const context = canvas.getContext("2d");
    context.fillStyle = `hsl(${n * 7} 50% 50%)`;
    context.fillRect(0, 0, 160, 120);
    return canvas.toDataURL("image/jpeg");
  });
  thumbnails.source = (row) => pictures[row % 50];
  report.hasImages = true;
  map.redraw();
}"""


def look(page: Page, report: Path) -> dict[str, float]:
    """Open a report, and measure its map."""
    found = {"map drawn (s)": seconds_until_map(page, report)}
    for label, zoom in (("whole map", 1.0), ("zoomed in", 5.0)):
        for kind in ("pan", "zoom"):
            page.evaluate(f"camera.fit(), camera.zoomAt(500, 250, {zoom}), map.redraw()")
            page.wait_for_timeout(400)
            times = page.evaluate(MOVE, kind)
            found[f"{label}, {kind} (ms)"] = float(np.median(times))
            found[f"{label}, {kind}, slowest of 20 (ms)"] = float(np.quantile(times, 0.95))
        if zoom == 1:
            page.evaluate(GIVE_PICTURES)
    page.evaluate("camera.fit(), map.redraw()")
    found["hover (ms)"] = float(np.median(page.evaluate(HOVER)))
    found["lasso (ms)"], found["lasso (points)"] = page.evaluate(LASSO)
    return found


def measure(n_points: int, n_clusters: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, browser_page() as page:
        images = images_table([f"row {row}" for row in range(n_points)])
        source = {"source": ["made"], "source_kind": "features"}
        run = write_blobs(Path(folder, "run"), images, n_clusters, source)
        return {"points": n_points, "clusters": n_clusters} | look(page, write_report(run))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("n_points", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--n-clusters", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(n_points, arguments.n_clusters) for n_points in arguments.n_points]
    print_result(setting("playwright") | {"map": rows}, arguments.json)


if __name__ == "__main__":
    main()
