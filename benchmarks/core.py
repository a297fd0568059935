"""Exact against spectral diffusion, and the whole fit against scikit-learn's spectral clustering.

Run it with ``python benchmarks/core.py``; ``--quick`` leaves out the largest sizes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from _setting import print_result, setting
from nouncut import NTKSpectralClustering
from nouncut.compute.threads import count_threads
from nouncut.method.ensemble import ensemble_graphs
from nouncut.method.graphs import normalize_graph, symmetric_graphs
from nouncut.method.kernel import noun_probabilities
from nouncut.method.labels import assign_labels
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import ClipLikeData, make_clip_like

TAU, Q, N_CLUSTERS = 0.04, 30, 10
# The separation of overlapping and of clear classes.
DATA = {"overlapping": 0.2, "clear": 0.45}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def prompt_graphs(data: ClipLikeData) -> list[csr_array]:
    threads = count_threads(-1)
    probabilities = noun_probabilities(data.features, data.noun_features, TAU, threads)
    found = kernel_neighbors(data.features, probabilities, Q, n_threads=threads)
    return [normalize_graph(graph)[0] for graph in symmetric_graphs(found)]


def compare_solvers(n_images: int, repeats: int) -> dict[str, Any]:
    data = make_clip_like(n_images, N_CLUSTERS, separation=0.2, random_state=0)
    graphs = prompt_graphs(data)

    def solve(solver: Any) -> Any:
        return ensemble_graphs(
            graphs,
            N_CLUSTERS,
            solver=solver,
            cut="diffused",
            random_state=0,
            n_threads=count_threads(-1),
        )

    exact_seconds, exact = timed(lambda: solve("exact"))
    spectral = [timed(lambda: solve("spectral")) for _ in range(repeats)]
    seconds, fast = float(np.median([elapsed for elapsed, _ in spectral])), spectral[0][1]
    labels = [assign_labels(found.cut.eigenpairs.vectors) for found in (exact, fast)]
    return {
        "images": n_images,
        "exact (s)": exact_seconds,
        "spectral (s)": seconds,
        "ratio": exact_seconds / seconds,
        "ARI of labels": float(adjusted_rand_score(*labels)),
        "weights differ by": float(np.abs(exact.prompts.weights - fast.prompts.weights).max()),
        "H differs by": float(np.abs(fast.prompts.losses / exact.prompts.losses - 1).max()),
    }


def compare_with_scikit_learn(kind: str, n_images: int, repeats: int) -> dict[str, Any]:
    data = make_clip_like(n_images, N_CLUSTERS, n_nouns=800, separation=DATA[kind], random_state=0)

    def ours() -> Any:
        model = NTKSpectralClustering(N_CLUSTERS, random_state=0, n_jobs=-1)
        return model.fit_predict(data.features, noun_features=data.noun_features)

    def theirs() -> Any:
        model = SpectralClustering(
            N_CLUSTERS, affinity="nearest_neighbors", n_neighbors=Q, random_state=0, n_jobs=-1
        )
        return model.fit_predict(data.features)

    runs = [(timed(ours), timed(theirs)) for _ in range(repeats)]
    seconds = np.median([(mine[0], other[0]) for mine, other in runs], axis=0)
    scores = [clustering_scores(data.labels, labels) for _, labels in runs[0]]
    return {
        "data": f"{kind}, {n_images} images",
        "nouncut, 7 prompts (s)": float(seconds[0]),
        "scikit-learn, 1 graph (s)": float(seconds[1]),
        "ratio": float(seconds[0] / seconds[1]),
        "nouncut ACC": scores[0].acc,
        "scikit-learn ACC": scores[1].acc,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--repeats", type=int, default=3, help="runs per figure (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    compare_solvers(400, 1)  # Loads what is slow to load.
    sizes = (400, 450) if arguments.quick else (500, 1000, 2000, 4000)
    largest = 600 if arguments.quick else 10_000
    result = setting("scipy", "scikit-learn") | {
        "Exact and spectral diffusion of 7 prompts, 10 clusters": [
            compare_solvers(size, arguments.repeats) for size in sizes
        ],
        "Whole fit, 10 clusters, 800 nouns": [
            compare_with_scikit_learn(kind, largest, arguments.repeats) for kind in DATA
        ],
    }
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
