"""Few and many leading eigenvectors: our filtered subspace iteration beside ARPACK and LOBPCG.

``python benchmarks/eigen.py`` builds graphs of synthetic images and solves each with every solver,
to the same residual. It compares the time, and the accuracy of the labels.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh, lobpcg

from _setting import print_result, setting
from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.threads import count_threads
from nouncut.method.graphs import normalize_graph, symmetric_graphs
from nouncut.method.kernel import Kernel
from nouncut.method.labels import assign_labels
from nouncut.method.search import search_neighbors
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

TAU, Q = 0.04, 30
# Smaller residuals do not change the labels. ARPACK's tolerance means the same.
RESIDUAL = 1e-4
# Images, classes and their separation.
CASES = [(10_000, 10, 0.2), (10_000, 100, 0.3), (50_000, 10, 0.2), (50_000, 100, 0.3)]


def make_graph(n_images: int, n_clusters: int, separation: float) -> tuple[csr_array, NDArray[Any]]:
    data = make_clip_like(
        n_images, n_clusters, n_nouns=400, n_prompts=1, separation=separation, random_state=0
    )
    images, threads = data.features, count_threads(-1)
    found = search_neighbors(Kernel(images, images, data.noun_features, TAU), Q, n_threads=threads)
    return normalize_graph(symmetric_graphs(found.neighbors)[0])[0], data.labels


def ours(graph: csr_array, k: int) -> NDArray[Any]:
    return top_eigenpairs(
        graph, k, tol=RESIDUAL, random_state=0, n_threads=count_threads(-1)
    ).vectors


def arpack(graph: csr_array, k: int) -> NDArray[Any]:
    start = np.random.default_rng(0).normal(size=graph.shape[0])
    return np.asarray(eigsh(graph, k, which="LA", v0=start, tol=RESIDUAL)[1])


def block_lobpcg(graph: csr_array, k: int) -> NDArray[Any]:
    start = np.random.default_rng(0).normal(size=(graph.shape[0], k))
    return np.asarray(lobpcg(graph, start, tol=RESIDUAL, maxiter=200)[1])


SOLVERS = {"ours": ours, "ARPACK": arpack, "LOBPCG": block_lobpcg}


def compare(case: tuple[int, int, float]) -> dict[str, Any]:
    graph, classes = make_graph(*case)
    row: dict[str, Any] = {"images": case[0], "vectors": case[1]}
    for name, solve in SOLVERS.items():
        start = time.perf_counter()
        vectors = solve(graph, case[1])
        row[f"{name} (s)"] = time.perf_counter() - start
        image = graph @ vectors
        quotients = np.einsum("ij,ij->j", vectors, image)
        row[f"{name} residual"] = float(np.linalg.norm(image - vectors * quotients, axis=0).max())
        row[f"{name} ACC"] = clustering_scores(classes, assign_labels(vectors)).acc
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000, help="leave out larger cases")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    compare((1000, 4, 0.4))  # Compile first.
    rows = [compare(case) for case in CASES if case[0] <= arguments.images]
    print_result(setting("scipy") | {"Leading eigenvectors": rows}, arguments.json)


if __name__ == "__main__":
    main()
