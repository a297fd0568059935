"""From a thousand eigenvectors to labels: ours beside scikit-learn's.

``python benchmarks/labels.py`` makes orthonormal vectors of known classes, with a random rotation
and noise, and times every way of assigning labels. Methods that take longer than ``--limit``
seconds are reported as capped.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import cluster_qr, discretize

from _setting import print_result, setting
from nouncut.compute.threads import count_threads
from nouncut.method.labels import assign_labels
from nouncut.paper.scores import clustering_scores

NOISE = 0.5


def make_vectors(n_images: int, n_clusters: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return orthonormal columns whose rows point at their class, and the classes."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, n_clusters, n_images)
    rows = rng.normal(0, NOISE / np.sqrt(n_clusters), (n_images, n_clusters)).astype(np.float32)
    rows[np.arange(n_images), classes] += 1
    rotation = np.linalg.qr(rng.normal(size=(n_clusters, n_clusters)))[0].astype(np.float32)
    return np.linalg.qr(rows @ rotation)[0].astype(np.float32), classes


def directions(vectors: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


METHODS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "discretize": lambda v: assign_labels(v, "discretize", 0, count_threads(-1)),
    "cluster_qr": lambda v: assign_labels(v, "cluster_qr", 0, count_threads(-1)),
    "kmeans": lambda v: assign_labels(v, "kmeans", 0, count_threads(-1)),
    "scikit-learn's discretize": lambda v: discretize(v, random_state=0),
    "scikit-learn's cluster_qr": cluster_qr,
    "scikit-learn's k-means, once": lambda v: KMeans(
        v.shape[1], n_init=1, random_state=0
    ).fit_predict(directions(v)),
}


def measure(name: str, n_images: int, n_clusters: int, answer: Any) -> None:
    vectors, classes = make_vectors(n_images, n_clusters)
    answer.send("ready")
    start = time.perf_counter()
    labels = METHODS[name](vectors)
    seconds = time.perf_counter() - start
    answer.send({"seconds": seconds, "ACC": clustering_scores(classes, labels).acc})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--clusters", type=int, default=1_000)
    parser.add_argument("--limit", type=float, default=120, help="seconds per method")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = []
    for name in METHODS:
        ours, theirs = multiprocessing.Pipe()
        size = (arguments.images, arguments.clusters)
        process = multiprocessing.get_context("spawn").Process(
            target=measure, args=(name, *size, theirs)
        )
        process.start()
        ours.recv()
        found = {"seconds": arguments.limit, "ACC": None, "capped": True}
        if ours.poll(arguments.limit):
            found = ours.recv() | {"capped": False}
        process.kill()
        process.join()
        rows.append({"labels by": name} | found)
    title = f"Labels of {arguments.images:,} images in {arguments.clusters:,} clusters"
    print_result(setting("scikit-learn") | {title: rows}, arguments.json)


if __name__ == "__main__":
    main()
