"""Runs of made points in blobs, and a browser for their reports."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from playwright.sync_api import Page, ViewportSize, sync_playwright

from nouncut.runs.run import Run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA
from nouncut.runs.writer import RunContents, RunWriter

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
VIEWPORT: ViewportSize = {"width": 1280, "height": 800}
N_GROUPS = 8


def write_blobs(
    directory: Path, images: pa.Table, n_clusters: int, manifest: dict[str, Any]
) -> Run:
    """Write a run whose clusters are blobs on the map, near the others of their group."""
    rng = np.random.default_rng(1)
    n_images = len(images)
    labels = np.sort(rng.integers(0, n_clusters, n_images))
    groups = np.arange(n_clusters) % N_GROUPS
    centers = rng.random((N_GROUPS, 2))[groups] + rng.normal(0, 0.08, (n_clusters, 2))
    layout = centers[labels] + rng.normal(0, 0.02, (n_images, 2))
    names = pa.array([f"cluster {number}" for number in range(n_clusters)])
    members = np.split(np.arange(n_images), np.searchsorted(labels, np.arange(1, n_clusters)))
    sizes = [len(rows) for rows in members]
    second = (labels + 1) % n_clusters
    contents = RunContents(
        manifest={"tree": {"sizes": sizes, "levels": [groups.tolist()]}} | manifest,
        assignments=pa.table(
            {
                "path": images["path"],
                "cluster": labels,
                "name": names.take(pa.array(labels)),
                "confidence": rng.uniform(0.4, 1, n_images),
                "second_cluster": second,
                "second_name": names.take(pa.array(second)),
                "second_confidence": rng.uniform(0, 0.4, n_images),
                "outlier": rng.random(n_images) < 0.01,
            },
            schema=ASSIGNMENTS_SCHEMA,
        ),
        clusters=pa.table(
            {
                "cluster": range(n_clusters),
                "name": names,
                "more_words": [["more", "words"]] * n_clusters,
                "name_confidence": [0.9] * n_clusters,
                "guess": [False] * n_clusters,
                "gloss": ["a short explanation"] * n_clusters,
                "size": sizes,
                "cohesion": rng.random(n_clusters),
                "exemplars": [rows[:12].tolist() for rows in members],
                "borderline": [rows[-12:].tolist() for rows in members],
            },
            schema=CLUSTERS_SCHEMA,
        ),
        images=images,
        arrays={"layout": layout.astype(np.float32)},
    )
    with RunWriter(directory) as writer:
        return writer.finish(contents)


@contextmanager
def browser_page() -> Iterator[Page]:
    """Open a page of Chromium without a graphics card."""
    with sync_playwright() as playwright:
        chromium = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser.new_page(viewport=VIEWPORT)
        browser.close()


def seconds_until_map(page: Page, report: Path) -> float:
    """Open a report, and return how long it takes until its map is drawn."""
    start = time.perf_counter()
    page.goto(report.as_uri(), wait_until="commit")
    while not page.evaluate("document.getElementById('map-frame')?.dataset.zoom ?? ''"):
        page.wait_for_timeout(10)
    return time.perf_counter() - start
