"""The spectral solver against the exact one, also for small clusters and dense graphs.

Run it with ``python benchmarks/agreement.py``. It draws synthetic sets that differ in images,
images per cluster, neighbours, separation, prompts and kinds of graphs. It compares the exact and
the spectral solver, for the diffused affinity (the paper's RAD) and for the weighted mean graph
(the default), with the plain eigenvectors of the mean graph. The number of clusters is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from _setting import print_result, setting
from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.ensemble import ensemble_graphs
from nouncut.method.graphs import (
    even_mean,
    excluded_images,
    mean_graph,
    normalize_graph,
    symmetric_graphs,
)
from nouncut.method.kernel import Kernel
from nouncut.method.labels import assign_labels
from nouncut.method.search import search_neighbors
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

TAU = 0.04
# How many sets of every size: exact diffusion of 3,000 images takes a minute.
SETS = {60: 100, 200: 100, 600: 80, 1500: 30, 3000: 10}
PER_CLUSTER = (5, 10, 30, 100, 300)
NEIGHBORS = (5, 10, 30, 100, 200)
SEPARATIONS = (0.15, 0.25, 0.35, 0.45)
PROMPTS = (1, 2, 3, 5, 7)
# Dense graphs and many prompts of many images would take hours.
LARGE, LARGE_NEIGHBORS, LARGE_PROMPTS = 1500, (5, 10, 30), (2, 3)
METHODS = ("RAD exact", "RAD spectral", "mean exact", "mean spectral", "plain mean")


class Drawn(NamedTuple):
    """The parameters of a synthetic set."""

    images: int
    per_cluster: int
    neighbors: int
    separation: float
    prompts: int
    graph: str


class Outcome(NamedTuple):
    """Accuracies by method, and the share of the exact solver's subspace that was found."""

    drawn: Drawn
    acc: dict[str, float]
    rad_subspace: float
    mean_subspace: float


def draw_sets(seed: int) -> list[Drawn]:
    rng = np.random.default_rng(seed)
    drawn = []
    for images, n_sets in SETS.items():
        is_large = images >= LARGE
        for number in range(n_sets):
            fits = [per for per in PER_CLUSTER if 2 * per <= images]
            near = [q for q in (LARGE_NEIGHBORS if is_large else NEIGHBORS) if q < images]
            drawn.append(
                Drawn(
                    images,
                    fits[number % len(fits)],
                    int(rng.choice(near)),
                    float(rng.choice(SEPARATIONS)),
                    int(rng.choice(LARGE_PROMPTS if is_large else PROMPTS)),
                    str(rng.choice(["union", "union", "mutual"])),
                )
            )
    return drawn


def make_graphs(drawn: Drawn, seed: int) -> tuple[list[csr_array], NDArray[Any], int]:
    """Return normalised graphs of the images that can be cut, their classes and how many."""
    k = drawn.images // drawn.per_cluster
    data = make_clip_like(
        drawn.images, k, n_prompts=drawn.prompts, separation=drawn.separation, random_state=seed
    )
    X = data.features
    found = search_neighbors(Kernel(X, X, data.noun_features, TAU), drawn.neighbors, n_threads=2)
    graphs = symmetric_graphs(found.neighbors, neighbors=drawn.graph)  # type: ignore[arg-type]
    kept = np.delete(np.arange(len(X)), excluded_images(even_mean(graphs), k))
    return [normalize_graph(g[kept][:, kept])[0] for g in graphs], data.labels[kept], k


def compare(drawn: Drawn, seed: int) -> Outcome | None:
    graphs, labels, k = make_graphs(drawn, seed)
    if len(labels) < max(2 * k, drawn.images // 2):
        return None  # With mutual neighbours most images have none.
    vectors: dict[str, NDArray[Any]] = {}
    for name, cut in (("RAD", "diffused"), ("mean", "mean")):
        for solver in ("exact", "spectral"):
            found = ensemble_graphs(
                graphs,
                k,
                solver=solver,
                cut=cut,  # type: ignore[arg-type]
                random_state=0,
                n_threads=2,
            )
            vectors[f"{name} {solver}"] = found.cut.eigenpairs.vectors
            if name == "RAD" and solver == "exact":
                mean = mean_graph(graphs, found.prompts.weights)
    vectors["plain mean"] = top_eigenpairs(mean, k, tol=1e-4, random_state=0, n_threads=2).vectors
    acc = {name: clustering_scores(labels, assign_labels(v)).acc for name, v in vectors.items()}
    shares = [subspace(vectors[f"{n} exact"], vectors[f"{n} spectral"]) for n in ("RAD", "mean")]
    return Outcome(drawn, acc, *shares)


def subspace(exact: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the mean squared cosine of the angles between two subspaces."""
    cosines = np.linalg.svd(exact.T @ found, compute_uv=False)
    return float(np.mean(np.square(cosines)))


def table(
    outcomes: Sequence[Outcome], cell: Callable[[Drawn], tuple[object, ...]], names: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    for key in sorted({cell(o.drawn) for o in outcomes}, key=str):
        own = [o for o in outcomes if cell(o.drawn) == key]
        means = {name: 100 * float(np.mean([o.acc[name] for o in own])) for name in METHODS}
        rows.append(
            dict(zip(names, key, strict=True))
            | {"sets": len(own)}
            | {name: round(mean, 1) for name, mean in means.items()}
            | {
                "RAD: share of subspace": round(float(np.mean([o.rad_subspace for o in own])), 4),
                "mean: share of subspace": round(float(np.mean([o.mean_subspace for o in own])), 4),
                "RAD: below": round(means["RAD exact"] - means["RAD spectral"], 2),
                "mean: below": round(means["mean exact"] - means["mean spectral"], 2),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="another draw (default: 0)")
    parser.add_argument("--sets", type=int, help="only the first of them")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    drawn = draw_sets(arguments.seed)[: arguments.sets]
    results = [compare(one, seed) for seed, one in enumerate(drawn)]
    found = [one for one in results if one is not None]
    cells: dict[str, tuple[Callable[[Drawn], tuple[object, ...]], Sequence[str]]] = {
        "images per cluster and neighbours": (
            lambda d: (d.per_cluster, d.neighbors),
            ("per cluster", "neighbours"),
        ),
        "graphs and images per cluster": (
            lambda d: (d.graph, d.per_cluster),
            ("graph", "per cluster"),
        ),
        "images": (lambda d: (d.images,), ("images",)),
        "separation": (lambda d: (d.separation,), ("separation",)),
        "prompts": (lambda d: (d.prompts,), ("prompts",)),
        "graphs": (lambda d: (d.graph,), ("graph",)),
        "all": (lambda d: ("all",), ("",)),
    }
    result = setting("scipy") | {
        f"ACC by {name}": table(found, cell, names) for name, (cell, names) in cells.items()
    }
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
