"""The explorer at work: how long a person waits for the page, a search, an edit, a picture.

Run ``python benchmarks/explore.py [N_IMAGES ...]``. It makes runs with made features and real
little pictures (repeated in the larger runs), starts ``nouncut explore`` as a process of its own,
and measures medians and 95th percentiles of what a browser asks for, over one connection, and the
first paint in Chromium without a graphics card (``apt install chromium``, or
``NOUNCUT_CHROMIUM=path``). ``--keep DIR`` keeps the runs for another time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from playwright.sync_api import Page, sync_playwright
from scipy.sparse import csr_array

from _blobs import ARGUMENTS
from _setting import print_result, setting
from nouncut.compute.rows import unit_rows
from nouncut.images.hashing import content_hash
from nouncut.method.graphs import normalize_graph
from nouncut.models.choose import load_encoder
from nouncut.runs.run import open_run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.tree import find_levels
from nouncut.runs.writer import RunContents, RunWriter
from report import make_photographs

SIZES = (1_000, 10_000, 100_000)
N_PICTURES = 1_000
N_NEIGHBORS = 30
N_FEATURES = 256
# Images of a cluster that is also linked to the next cluster.
SHARE_ACROSS = 0.1
N_PAINTS = 5
REPEATS = 20
SPLIT_SIZE = 2_000
WORDS = (
    *("dog", "cat", "horse", "bird", "fish", "tree", "flower", "mountain", "beach", "river"),
    *("bridge", "church", "castle", "train", "bus", "car", "truck", "bicycle", "boat", "airplane"),
    *("chair", "table", "lamp", "clock", "book", "guitar", "piano", "violin", "apple", "banana"),
)
TEXTS = ("dog", "a boat on a river", "flowers", "vehicle", "old church", "musical instrument", "do")


def make_run(directory: Path, photos: Path, n_images: int) -> None:
    """Write a run with everything that the explorer uses."""
    rng = np.random.default_rng(0)
    encoder = load_encoder("mini").encoder
    n_clusters = min(2 * len(WORDS), max(10, n_images // 500))
    names = [WORDS[c % len(WORDS)] + f" {c // len(WORDS) + 1}" * (c >= len(WORDS))
             for c in range(n_clusters)]  # fmt: skip
    labels = _labels(n_images, n_clusters, rng)
    texts = encoder.encode_texts([name.split()[0] for name in names])
    semantic = _around(texts, labels, 0.3, rng)
    features = _around(rng.normal(size=(n_clusters, N_FEATURES)), labels, 0.8, rng)
    graph = _graph(features, labels, rng)
    paths = _pictures(photos, n_images)
    known = {path: content_hash(path) for path in paths[:N_PICTURES]}
    hashes = [known[paths[row % N_PICTURES]] for row in range(n_images)]
    images = images_table(paths, hashes=hashes)
    contents = RunContents(
        manifest={
            "source": [str(photos)],
            "source_kind": "images",
            "model": {"name": "mini", "fingerprint": encoder.fingerprint},
            "nouns": {"words": list(WORDS)},
            "tree": find_levels(graph, labels, semantic),
        },
        assignments=_assignments(images, labels, names, rng),
        clusters=_clusters(labels, names, rng),
        images=images,
        arrays={
            "features": features,
            "semantic": semantic,
            "layout": _around(rng.random((n_clusters, 2)), labels, 0.03, rng, unit=False),
            "model_noun_features": encoder.encode_texts(list(WORDS))[None],
            "graph_data": graph.data,
            "graph_indices": graph.indices,
            "graph_indptr": graph.indptr,
        },
    )
    with RunWriter(directory) as writer:
        writer.finish(contents)


def _labels(n_images: int, n_clusters: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return labels of uneven clusters, the largest first; the first has a round size."""
    shares = rng.dirichlet(np.full(n_clusters, 3.0))
    labels = rng.choice(n_clusters, n_images, p=shares)
    labels[: min(SPLIT_SIZE, n_images // 4)] = 0
    order = np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")
    return np.asarray(np.argsort(order)[rng.permutation(labels)])


def _around(
    centers: NDArray[Any],
    labels: NDArray[np.intp],
    spread: float,
    rng: np.random.Generator,
    unit: bool = True,
) -> NDArray[np.float32]:
    noise = rng.normal(size=(len(labels), centers.shape[1])).astype(np.float32)
    if not unit:
        return np.asarray(centers[labels] + spread * noise, dtype=np.float32)
    noise *= spread / np.sqrt(centers.shape[1])
    return np.asarray(unit_rows(unit_rows(centers)[labels] + noise), dtype=np.float32)


def _graph(
    features: NDArray[np.float32], labels: NDArray[np.intp], rng: np.random.Generator
) -> csr_array:
    """Link every image with random ones of its cluster, and some with the next cluster."""
    n_images, n_clusters = len(labels), int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    wanted = np.repeat(labels, N_NEIGHBORS)
    wanted = np.where(rng.random(len(wanted)) < SHARE_ACROSS, (wanted + 1) % n_clusters, wanted)
    sizes = np.diff(starts)[wanted]
    columns = order[starts[wanted] + (rng.random(len(wanted)) * sizes).astype(np.intp)]
    rows = np.repeat(np.arange(n_images), N_NEIGHBORS)
    weights = rng.uniform(0.2, 1, len(rows))
    weights[rows == columns] = 0
    graph = csr_array((weights, (rows, columns)), shape=(n_images, n_images))
    graph = csr_array(graph.maximum(graph.T))
    graph.eliminate_zeros()
    return normalize_graph(graph)[0]


def _pictures(photos: Path, n_images: int) -> list[Path]:
    """Write different pictures, and links to them where there are more images."""
    paths = make_photographs(photos, min(n_images, N_PICTURES))
    for row in range(N_PICTURES, n_images):
        path = photos / f"{row // 1000:03}" / f"picture {row:06}.jpg"
        path.parent.mkdir(exist_ok=True)
        os.link(paths[row % N_PICTURES], path)
        paths.append(path)
    return paths


def _assignments(
    images: pa.Table, labels: NDArray[np.intp], names: list[str], rng: np.random.Generator
) -> pa.Table:
    confidence = rng.uniform(0.4, 1, len(labels))
    second = (labels + 1) % len(names)
    every = np.array(names, dtype=object)
    columns = {
        "path": images["path"],
        "cluster": labels,
        "name": every[labels],
        "confidence": confidence,
        "second_cluster": second,
        "second_name": every[second],
        "second_confidence": 1 - confidence,
        "outlier": rng.random(len(labels)) < 0.01,
    }
    return pa.table(columns, schema=ASSIGNMENTS_SCHEMA)


def _clusters(labels: NDArray[np.intp], names: list[str], rng: np.random.Generator) -> pa.Table:
    members = [np.flatnonzero(labels == cluster) for cluster in range(len(names))]
    columns = {
        "cluster": range(len(names)),
        "name": names,
        "more_words": [["more", "words"]] * len(names),
        "name_confidence": [0.9] * len(names),
        "guess": [False] * len(names),
        "gloss": [""] * len(names),
        "size": [len(rows) for rows in members],
        "cohesion": rng.random(len(names)),
        "exemplars": [rows[:12].tolist() for rows in members],
        "borderline": [rows[-12:].tolist() for rows in members],
    }
    return pa.table(columns, schema=CLUSTERS_SCHEMA)


class Client:
    """Talks to the explorer as its page does."""

    def __init__(self, address: str) -> None:
        found = re.search(r"//([^/]+)/\?token=(\S+)", address)
        assert found is not None
        self.host, token = found.groups()
        self._connection = http.client.HTTPConnection(self.host)
        self.cookie = ""
        headers = self._send("GET", f"/?token={token}")[1]
        self.cookie = headers["set-cookie"].split(";")[0]
        self.version = self.json("/api/run")["version"]

    def _send(self, method: str, path: str, body: Any = None) -> tuple[bytes, dict[str, str]]:
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        content = None if body is None else json.dumps(body)
        headers |= {"Content-Type": "application/json"} if content else {}
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        found = response.read()
        if response.status >= 400:
            raise RuntimeError(f"{path}: {found.decode()}")
        return found, {name.lower(): value for name, value in response.getheaders()}

    def reconnect(self) -> None:
        """Begin a new connection with the next request: the server ends idle ones."""
        self._connection.close()

    def get(self, path: str) -> bytes:
        return self._send("GET", path)[0]

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def edit(self, **fields: Any) -> Any:
        """Make an edit, and load what the page loads afterwards."""
        done = json.loads(self._send("POST", "/api/edit", {"version": self.version} | fields)[0])
        self.version = done["version"]
        return done

    def reload(self) -> None:
        self.get("/api/run")
        self.get("/api/labels")


@contextmanager
def explorer(directory: Path) -> Iterator[str]:
    """Start the explorer of a run, and yield its address."""
    command = [sys.executable, "-m", "nouncut", "explore", str(directory), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def timed(work: Callable[[int], object], repeats: int = REPEATS) -> str:
    """Return median and 95th percentile of the milliseconds that calls take."""
    times = []
    for number in range(repeats):
        start = time.perf_counter()
        work(number)
        times.append(1000 * (time.perf_counter() - start))
    return f"{np.median(times):.0f} / {np.percentile(times, 95):.0f}"


def measure(client: Client, directory: Path) -> dict[str, str]:
    """Measure all requests; the first of each kind is not counted, as the page loads it early."""
    run = open_run(directory)
    client.reconnect()
    # The page has made edits.
    client.version = json.loads(client.get("/api/run"))["version"]
    first, second, third = (np.flatnonzero(run.computed.labels == c).tolist() for c in range(3))
    for text in TEXTS:
        client.get(f"/api/search?text={text.replace(' ', '%20')}&n=100")
    reads: dict[str, Callable[[int], object]] = {
        "/api/run": lambda _: client.get("/api/run"),
        "/api/labels": lambda _: client.get("/api/labels"),
        "search": lambda i: client.get(
            f"/api/search?text={TEXTS[i % len(TEXTS)].replace(' ', '%20')}&n=100"
        ),
        "like": lambda i: client.get(f"/api/like?row={i}&n=100"),
        "explain": lambda i: client.get(f"/api/explain?row={i}"),
        "suggestions": lambda _: client.get("/api/suggestions"),
        "split preview": lambda _: client.edit(verb="split", group=0, parts=2, preview=True),
    }
    found = {name: timed(work) for name, work in reads.items()}
    edits: dict[str, Callable[[int], Any]] = {
        "move 5": lambda i: client.edit(verb="move", rows=first[5 * i : 5 * i + 5], to=1),
        "set aside 5": lambda i: client.edit(verb="set aside", rows=third[5 * i : 5 * i + 5]),
        "rename": lambda i: client.edit(verb="rename", group=2, name=f"name {i}"),
        "undo": lambda _: client.edit(verb="undo"),
        "redo": lambda _: client.edit(verb="redo"),
        "merge and undo": lambda _: (
            client.edit(verb="merge", groups=[0, 1]),
            client.edit(verb="undo"),
        ),
        "split and undo": lambda _: (
            client.edit(verb="split", group=0, parts=2),
            client.edit(verb="undo"),
        ),
    }
    n = min(REPEATS, len(third) // 5)
    found |= {f"edit: {name}": timed(work, n) for name, work in edits.items()}

    def edit_and_reload(i: int) -> None:
        client.edit(verb="move", rows=second[5 * i : 5 * i + 5], to=0)
        client.reload()

    found["edit, /api/run, /api/labels"] = timed(edit_and_reload, min(n, len(second) // 5))
    rows = np.random.default_rng(0).permutation(min(N_PICTURES, len(run.labels)))
    for side, kind in ((96, "new"), (256, "new"), (96, "kept"), (256, "kept")):
        addresses = [f"/thumbnails/{side}/{row}" for row in rows]
        found[f"thumbnail {side}, {kind}"] = _timed_pictures(client, addresses)
    return found


def _timed_pictures(client: Client, addresses: list[str]) -> str:
    return timed(lambda i: client.get(addresses[i]), 50)


# What a person does in the page, from the click to the frame that shows what came of it. The
# pictures of the step before have arrived by then.
INTERACTIONS = {
    "show a group": "(i) => place.showGroup(i % 4)",
    "search": "(i) => { search.input.value = texts[i % texts.length]; return search.look(); }",
    "select a group": "(i) => selection.set(report.membersOf(i % 4))",
    "scroll": "(i) => { document.getElementById('tiles').scrollTop = 3000 * i; }",
    "move 5": "(i) => edits.move(report.membersOf(3).slice(0, 5), i % 2)",
    "undo": "() => edits.undo()",
    "rename": "(i) => edits.rename(2, `page ${i}`)",
    "merge": "(i) => (i % 2 ? edits.undo() : edits.merge([0, 1]))",
}
TIMED = """async ([work, texts, n]) => {
  const act = eval(work);
  const shown = () => new Promise((end) => requestAnimationFrame(() => setTimeout(end)));
  const times = [];
  for (let i = 0; i < n; i++) {
    const start = performance.now();
    await act(i);
    await shown();
    times.push(performance.now() - start);
    const coming = [...document.images].filter((image) => image.src && !image.complete);
    await Promise.all(coming.map((image) => image.decode().catch(() => {})));
  }
  return times;
}"""


def interactions(page: Page) -> dict[str, str]:
    """Return the milliseconds that a person waits in the page."""
    found = {}
    for name, work in INTERACTIONS.items():
        times = page.evaluate(TIMED, [work, TEXTS, 12])[1:]
        found[f"page: {name}"] = f"{np.median(times):.0f} / {np.percentile(times, 95):.0f}"
    return found


def in_browser(client: Client) -> dict[str, str]:
    """Return the milliseconds until something, and until most, is drawn, and of interactions."""
    painted, loaded = [], []
    name, _, value = client.cookie.partition("=")
    chromium = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for _ in range(N_PAINTS):
            # The benchmark's own scripts are texts, which the page's policy forbids.
            context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            context.add_cookies([{"name": name, "value": value, "url": f"http://{client.host}"}])
            page = context.new_page()
            page.goto(f"http://{client.host}/")
            page.wait_for_load_state("networkidle")
            painted.append(page.evaluate("performance.getEntriesByType('paint')[0]?.startTime"))
            loaded.append(
                page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
            )
            played = interactions(page) if len(painted) == N_PAINTS else {}
            context.close()
        browser.close()
    paint = {"first paint": f"{np.median(painted):.0f}", "page loaded": f"{np.median(loaded):.0f}"}
    return paint | played


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of images")
    parser.add_argument("--keep", type=Path, help="folder for the runs, used again if they exist")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    columns: dict[int, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = options.keep or Path(temporary)
        for size in options.sizes:
            directory = place / f"run-{size}"
            if not directory.exists():
                make_run(directory, place / f"photos-{size}", size)
            (directory / "edits.jsonl").unlink(missing_ok=True)
            shutil.rmtree(directory / "report-thumbnails", ignore_errors=True)
            start = time.perf_counter()
            with explorer(directory) as address:
                ready = f"{1000 * (time.perf_counter() - start):.0f}"
                client = Client(address)
                columns[size] = {
                    "start": ready,
                    **in_browser(client),
                    **measure(client, directory),
                }
    names = list(next(iter(columns.values())))
    rows = [
        {"ms (median / 95th percentile)": name}
        | {f"{size:,} images": found[name] for size, found in columns.items()}
        for name in names
    ]
    print_result(setting("starlette", "uvicorn") | {"Explorer": rows}, options.json)


if __name__ == "__main__":
    main()
