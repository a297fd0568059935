"""Time and peak memory of the whole fit from a thousand to a million images, beside scikit-learn.

``python benchmarks/scale.py --size 50k --output scale.jsonl`` measures one size. Every method
runs in its own process; methods that take longer than ``--limit`` seconds are reported as capped.
Methods that take less than twenty seconds run five times, and the median is reported.
``python benchmarks/scale.py --draw scale.jsonl docs/scale.svg`` draws the results.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from sklearn.cluster import SpectralClustering
from sklearn.cluster._spectral import cluster_qr

from _setting import print_result, setting
from nouncut import NTKSpectralClustering
from nouncut.compute.progress import ProgressLine
from nouncut.compute.threads import count_threads
from nouncut.method.graphs import normalize_graph, symmetric_graphs, symmetrize_graph
from nouncut.method.kernel import Kernel
from nouncut.method.search import search_neighbors
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import ClipLikeData, make_clip_like
from scale_figure import draw

TAU, Q = 0.04, 30
# Single timings of a few seconds are noisy.
QUICK, REPEATS = 20, 5
READY = "ready"
# With 10,000 images in ten classes a separation of 0.125 is as hard as CIFAR-10 with CLIP's
# features, and 0.2 as hard as ImageNet-10; 0.3 with 50,000 images is a little easier than ImageNet.
CASE = ("images", "classes", "nouns", "prompts", "separation")
SIZES: dict[str, list[tuple[int, int, int, int, float]]] = {
    "1k": [(1_000, 10, 800, 7, 0.3)],
    "10k": [
        (10_000, 10, 800, 7, 0.125),
        (10_000, 10, 800, 7, 0.2),
        (10_000, 10, 800, 7, 0.3),
        (10_000, 100, 800, 7, 0.2),
    ],
    "50k": [(50_000, 1_000, 10_000, 7, 0.3)],
    "200k": [(200_000, 1_000, 10_000, 7, 0.3)],
    "1m": [(1_000_000, 100, 2_000, 2, 0.45)],
}
# Larger sets would take too much time or memory.
LARGEST = {
    "nouncut": 10**9,
    "nouncut, RAD": 100_000,
    "scikit-learn": 60_000,
    "ARPACK": 60_000,
    "plain NumPy": 20_000,
    "exact RAD": 2_000,
}


def make_data(case: list[float]) -> ClipLikeData:
    n_images, n_clusters, n_nouns, n_prompts, separation = case
    return make_clip_like(
        int(n_images),
        int(n_clusters),
        n_nouns=int(n_nouns),
        n_prompts=int(n_prompts),
        separation=separation,
        random_state=0,
    )


class Stages:
    """Show progress, and record the time of every stage."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.ends: dict[str, float] = {}
        self.show = ProgressLine()

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.ends[stage] = time.perf_counter() - self.start
        self.show(stage, done, total)

    def seconds(self) -> dict[str, float]:
        ends = sorted(self.ends.items(), key=lambda item: item[1])
        before = [0.0, *(end for _, end in ends)]
        return {f"{stage} (s)": end - b for (stage, end), b in zip(ends, before, strict=False)}


def run_nouncut(data: ClipLikeData, n_clusters: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    stages = Stages()
    model = NTKSpectralClustering(n_clusters, random_state=0, n_jobs=-1, **options)
    model.fit(data.features, noun_features=data.noun_features, progress=stages)
    return model.labels_, stages.seconds() | {"recall": model.neighbor_recall_}


def warm_up() -> None:
    """Compile or load the code for few images and for many, before the clock starts."""
    data = make_clip_like(600, 4, n_nouns=50, n_prompts=2, random_state=0)
    run_nouncut(data, 4)
    few = Kernel(data.features, data.features, data.noun_features, TAU)
    search_neighbors(few, Q, method="candidates", n_threads=count_threads(-1))


def ready_graph(data: ClipLikeData) -> csr_array:
    """Return the graph of the first prompt, found by our own search."""
    images, threads = data.features, count_threads(-1)
    found = search_neighbors(
        Kernel(images, images, data.noun_features[:1], TAU), Q, n_threads=threads
    )
    return symmetric_graphs(found.neighbors)[0]


def cut_with_scikit_learn(graph: csr_array, n_clusters: int) -> Any:
    model = SpectralClustering(
        n_clusters, affinity="precomputed", assign_labels="cluster_qr", random_state=0
    )
    narrow = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    return model.fit_predict(csr_array((graph.data, *narrow), shape=graph.shape))


def cut_with_arpack(graph: csr_array, n_clusters: int) -> Any:
    """Cut as scikit-learn does, but without its factorisation, which is dense for large graphs."""
    normalized, degrees = normalize_graph(graph)
    start = np.random.default_rng(0).uniform(-1, 1, len(degrees))
    _, vectors = eigsh(normalized, n_clusters, which="LA", tol=0, v0=start)
    return cluster_qr(vectors / np.sqrt(degrees)[:, None])


def plain_graph(data: ClipLikeData) -> csr_array:
    """Build the graph of the first prompt from the paper's formulas, in plain NumPy."""
    images = data.features
    logits = images @ data.noun_features[0].T / TAU
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    rows, columns, values = [], [], []
    for first in range(0, len(images), 1000):
        part = slice(first, first + 1000)
        kernel = (images[part] @ images.T) * (probabilities[part] @ probabilities.T) / TAU**2
        own = np.arange(len(kernel))
        kernel[own, first + own] = 0
        nearest = np.argpartition(-kernel, Q, axis=1)[:, :Q]
        rows.append(np.repeat(first + own, Q))
        columns.append(nearest.ravel())
        values.append(np.take_along_axis(kernel, nearest, axis=1).ravel().astype(np.float64))
    shape = (len(images), len(images))
    ends = np.concatenate(rows), np.concatenate(columns)
    return symmetrize_graph(csr_array((np.concatenate(values), ends), shape=shape))


def measure(method: str, case: list[float]) -> dict[str, Any]:
    """Run a method in this process and return its time, memory and scores."""
    data, n_clusters = make_data(case), int(case[1])
    if method == "nouncut":
        warm_up()
    graph = ready_graph(data) if method in ("scikit-learn", "ARPACK") else None
    print(READY, flush=True)
    start = time.perf_counter()
    details: dict[str, Any] = {}
    if method == "nouncut":
        labels, details = run_nouncut(data, n_clusters)
    elif method == "nouncut, RAD":
        labels, details = run_nouncut(data, n_clusters, ensemble="diffusion", n_neighbors=Q)
    elif method == "scikit-learn":
        labels = cut_with_scikit_learn(graph, n_clusters)
    elif method == "ARPACK":
        labels = cut_with_arpack(graph, n_clusters)
    elif method == "plain NumPy":
        labels = cut_with_scikit_learn(plain_graph(data), n_clusters)
    else:
        model = NTKSpectralClustering(
            n_clusters,
            ensemble="diffusion",
            n_neighbors=Q,
            solver="exact",
            random_state=0,
            n_jobs=-1,
        )
        labels = model.fit_predict(data.features, noun_features=data.noun_features)
    seconds = time.perf_counter() - start
    scores = clustering_scores(data.labels, labels)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    found = {"seconds": seconds, "peak (GB)": peak, "NMI": scores.nmi, "ACC": scores.acc}
    return found | details


def measure_apart(method: str, case: tuple[Any, ...], limit: float) -> dict[str, Any]:
    named = dict(zip(CASE, case, strict=True))
    row: dict[str, Any] = {"method": method, **named, "capped": False}
    command = [sys.executable, __file__, "--measure", method, json.dumps(case)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        # Data and a ready graph do not count.
        while process.stdout.readline().strip() != READY:
            if process.poll() is not None:
                raise RuntimeError(f"{method} failed.")
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return row | {"seconds": float(limit), "capped": True}
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return row | found


def measure_often(method: str, case: tuple[Any, ...], limit: float) -> dict[str, Any]:
    rows = [measure_apart(method, case, limit)]
    while rows[0]["seconds"] < QUICK and len(rows) < REPEATS:
        rows.append(measure_apart(method, case, limit))
    return sorted(rows, key=itemgetter("seconds"))[len(rows) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, action="append", help="may be given repeatedly")
    parser.add_argument("--method", choices=LARGEST, action="append", help="all by default")
    parser.add_argument("--limit", type=float, default=3600, help="seconds per method")
    parser.add_argument("--output", type=Path, help="append the results to this file, one a line")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--draw", nargs=2, type=Path, metavar=("RESULTS", "SVG"))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], json.loads(arguments.measure[1]))))
        return
    if arguments.draw:
        source, target = arguments.draw
        target.write_text(draw([json.loads(line) for line in source.read_text().splitlines()]))
        return
    rows = []
    for case in (case for size in arguments.size or ["1k", "10k"] for case in SIZES[size]):
        methods = [name for name, largest in LARGEST.items() if case[0] <= largest]
        for method in (name for name in methods if name in (arguments.method or methods)):
            rows.append(measure_often(method, case, arguments.limit))
            if arguments.output:
                with arguments.output.open("a") as lines:
                    lines.write(json.dumps(rows[-1]) + "\n")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = [{name: row.get(name, "") for name in columns} for row in rows]
    print_result(setting("scipy", "scikit-learn") | {"Scale": table}, arguments.json)


if __name__ == "__main__":
    main()
