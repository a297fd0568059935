"""What a distributed run costs at sizes that nobody measured: a model fitted on measured runs.

``python benchmarks/distributed_cost.py d.jsonl`` reads lines of `distributed_stages.py` and prints,
as Markdown, the costs per image that it fits, and tables for 10^7, 10^8 and 10^9 images on 1 to
1,000 workers: hours, memory, bytes between workers, storage, money, and what limits the run.
``--draw FILE`` draws the memory of a worker in runs that differ in the number of partitions.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from nouncut.compute.eigen import guard_vectors
from nouncut.distributed.coarsen import MOST_CENTERS, count_micro_clusters
from nouncut.distributed.sizes import GRAPH_BYTES, Sizes
from nouncut.method.candidates import RANK
from nouncut.method.merge import count_pieces
from scale_figure import draw_partitions

# The run that is priced: CLIP's features and seven prompts, 100 clusters.
WIDTH, PROMPTS, CLUSTERS, NEIGHBORS = 512, 7, 100, 30
# A worker: one core, 8 GB, a share of its machine's network and of the object store.
MEMORY, BYTES_PER_SECOND, DOLLARS_PER_HOUR = 8 * 10**9, 125e6, 0.05
# `benchmarks/first_minute.py`: 79 photographs per second on two cores.
ENCODING_SECONDS = 2 / 79
# The scheduler's own time for a step.
SECONDS_PER_STEP = 0.001
# Bundles of partitions that one exchanges rows with, at most.
MOST_AROUND = 64
# Eigenproblems that the prompt weights take.
SOLUTIONS = 3
# Micro-clusters: rounds of k-means with the last assignment, and images that are grouped together.
KMEANS_ROUNDS, IMAGES_PER_SHARD = 7, 16_384
# Columns of a product where memory is not scarce: as wide as it gets on 100 workers of 8 GB.
WIDE_PANEL = 128
READING, SEARCH, LABELS = "reading and sorting", "neighbours", "labels and tables"
REST = "prompt weights and eigenvectors"
GROUPS = {
    READING: ("features", "sample", "cells", "sort", "partitions", "nodes", "layout"),
    SEARCH: ("visits", "neighbors", "homes", "union", "components", "kept", "cut-off"),
    LABELS: ("labels", "embedding", "sizes", "final", "temperature", "judged"),
}


class Cost(NamedTuple):
    """Per image: seconds of a core, bytes read and written in files."""

    seconds: float
    read: float
    written: float


def measured_costs(line: dict[str, Any]) -> dict[str, Cost]:
    """Return the costs per image of a measured run, by groups of stages."""
    n, stages, found = line["images"], line["stages"], {}
    for group, names in GROUPS.items():
        own = [stages[name] for name in names if name in stages]
        found[group] = Cost(
            *(sum(one[key] for one in own) / n for key in ("cpu", "read", "written"))
        )
    known = sum(cost.seconds for cost in found.values())
    others = [one for name, one in stages.items() if not any(name in g for g in GROUPS.values())]
    # Products with halos run between files, and are counted by the workers' clocks only.
    found[REST] = Cost(
        line["cpu_seconds"] / n - known,
        *(sum(one[key] for one in others) / n for key in ("read", "written")),
    )
    return found


def scales(line: dict[str, Any]) -> dict[str, float]:
    """Return by what the costs per image of a measured run differ from those of the priced one.

    Comparing grows with the number of features and of prompts, products and labels with the number
    of vectors. Without prompts there is one eigenproblem to solve, otherwise one per round.
    """
    width = WIDTH / line["dim"]
    vectors = vectors_of(10**7, CLUSTERS) / vectors_of(line["images"], line["clusters"])
    return {
        READING: width,
        SEARCH: width * (1 + PROMPTS) / (1 + line["prompts"]),
        LABELS: vectors,
        REST: vectors * (1 if line["prompts"] else SOLUTIONS),
    }


def search_work(
    cell: float, searches: list[list[int]], width: int, n_prompts: int
) -> NDArray[np.float64]:
    """Return what all searches of a run do per image.

    Values with images of near cells are computed and compared, candidates are evaluated under every
    prompt.
    """
    near, candidates = np.sum(searches, axis=0)
    numbers = width + (RANK if n_prompts else 0)
    return np.array([near * cell * numbers, near * cell, candidates * max(1, n_prompts)])


def coarse_work(share: float, n_landmarks: int, n_nouns: int) -> NDArray[np.float64]:
    """Return the same for micro-clusters: an image is put into one, and placed in the end.

    It is compared with all centres in every round, and with all landmarks under every prompt.
    `share` is the number of micro-clusters per image.
    """
    centers = KMEANS_ROUNDS * min(MOST_CENTERS, share * IMAGES_PER_SHARD)
    values = n_landmarks * PROMPTS
    numbers = (centers + n_landmarks) * WIDTH + values * n_nouns
    return np.array([numbers, centers + values, 0])


def work_of(line: dict[str, Any]) -> NDArray[np.float64]:
    """Return what the searches of a measured run did per image."""
    cell = line["images"] / line["n_cells"]
    return search_work(cell, line["searches"], line["dim"], line["prompts"])


def vectors_of(n_images: int, n_clusters: int) -> int:
    pieces = count_pieces(n_images, n_clusters)
    return pieces + guard_vectors(pieces)


def products_of(line: dict[str, Any]) -> float:
    """Return how often a run multiplied the graph with all vectors, from the bytes it sent."""
    vectors = vectors_of(line["images"], line["clusters"])
    return float(line["bytes_between_workers"] / (4 * line["halo_between_workers"] * vectors))


def product_work(n_vectors: int, n_products: float, panel: int) -> NDArray[np.float64]:
    """Return what all products of a run do per image: for each vector, and for each panel."""
    return n_products * n_vectors * np.array([1, 1 / min(panel, n_vectors)])


def products_done(line: dict[str, Any]) -> NDArray[np.float64]:
    """Return what the products of a measured run did per image."""
    n, prompts = line["images"], max(1, line["prompts"])
    sizes = Sizes(n, line["dim"], prompts, line["memory"], line["workers"])
    panel = sizes.panel(n, line["halo_between_workers"])
    return product_work(vectors_of(n, line["clusters"]), products_of(line), panel)


def fitted_rates(work: list[NDArray[np.float64]], seconds: list[float]) -> NDArray[np.float64]:
    """Return seconds per unit of each kind of work; relative errors count alike in all runs."""
    every = np.array(work)
    units = every.max(axis=0)  # They differ by orders of magnitude.
    return np.asarray(nnls(every / units / np.c_[seconds], np.ones(len(every)))[0] / units)


class Model(NamedTuple):
    """Costs per image of the priced run, seconds per unit of work, and a run like it."""

    costs: dict[str, Cost]
    search: NDArray[np.float64]
    products: NDArray[np.float64]
    like: dict[str, Any]


def fit_model(lines: list[dict[str, Any]]) -> Model:
    """Fit the mean costs per image of runs with prompts, and the rates of all runs."""
    totals: dict[str, list[Cost]] = {}
    with_prompts = [line for line in lines if line["prompts"]]
    for line in with_prompts:
        for group, cost in measured_costs(line).items():
            totals.setdefault(group, []).append(Cost(*(scales(line)[group] * x for x in cost)))
    costs = {group: Cost(*np.mean(found, axis=0)) for group, found in totals.items()}
    search, products = (
        fitted_rates(
            [done(line) for line in lines], [measured_costs(x)[group].seconds for x in lines]
        )
        for group, done in ((SEARCH, work_of), (REST, products_done))
    )
    like = max(with_prompts, key=lambda line: (line["prompts"], line["images"]))
    searched = search_work(like["images"] / like["n_cells"], like["searches"], WIDTH, PROMPTS)
    multiplied = product_work(vectors_of(10**7, CLUSTERS), products_of(like), WIDE_PANEL)
    for group, seconds in ((SEARCH, search @ searched), (REST, products @ multiplied)):
        costs[group] = costs[group]._replace(seconds=float(seconds))
    return Model(costs, search, products, like)


def checked_rows(model: Model, lines: list[dict[str, Any]]) -> Iterable[str]:
    yield (
        "| images | prompts | features | clusters | near cells and candidates of all searches "
        "| core s, neighbours | model | core s, all | model |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        n, by = line["images"], scales(line)
        search = float(model.search @ work_of(line)) * n
        rest = sum(model.costs[key].seconds / by[key] for key in (READING, LABELS)) * n
        rest += float(model.products @ products_done(line)) * n
        measured = measured_costs(line)[SEARCH].seconds * n
        efforts = ", then ".join(f"{near} and {number}" for near, number in line["searches"])
        about = f"{n:,} | {line['prompts']} | {line['dim']} | {line['clusters']} | {efforts}"
        found = (
            f"{measured:,.0f} | {search:,.0f} | {line['cpu_seconds']:,.0f} | {search + rest:,.0f}"
        )
        yield f"| {about} | {found} |"


class Estimate(NamedTuple):
    """One row of the tables."""

    hours: float
    memory: float
    between: float
    storage: float
    dollars: float
    limit: str


def estimate(n_images: int, n_workers: int, model: Model, *, encode: bool) -> Estimate:
    """Estimate a run on workers of one core each."""
    sizes, line = Sizes(n_images, WIDTH, PROMPTS, MEMORY, n_workers), model.like
    micro = count_micro_clusters("auto", sizes)
    n_cut = micro or n_images
    inner = sizes._replace(n_images=n_cut)
    work = search_work(n_cut / inner.cells, line["searches"], WIDTH, PROMPTS)
    vectors, n_products = vectors_of(n_cut, CLUSTERS), products_of(line)
    # Every worker holds consecutive partitions as one.
    n_bundles = min(n_workers, inner.partitions(NEIGHBORS, vectors))
    halo = int(line["halo"] / line["images"] * n_cut * (1 - 1 / n_bundles))
    panel = inner.panel(n_cut, halo)
    cut = model.search @ work + model.products @ product_work(vectors, n_products, panel)
    seconds = (model.costs[LABELS].seconds + float(cut)) * n_cut
    each = model.costs[READING].seconds + (ENCODING_SECONDS if encode else 0)
    if micro:
        coarse = coarse_work(micro / n_images, sizes.landmarks(CLUSTERS), line["nouns"])
        each += float(model.search @ coarse)
    seconds += each * n_images
    between = 4 * halo * vectors * n_products
    rows = {group: n_images if group == READING else n_cut for group in model.costs}
    written = sum(cost.written * rows[group] for group, cost in model.costs.items())
    files = written + sum(cost.read * rows[group] for group, cost in model.costs.items())
    around = min(n_bundles - 1, MOST_AROUND)
    steps = n_products * math.ceil(vectors / panel) * n_bundles * (1 + around)
    parts = {
        "cores": seconds / n_workers,
        "network": between / (n_workers * BYTES_PER_SECOND),
        "storage": files / (n_workers * BYTES_PER_SECOND),
        "scheduler": steps * SECONDS_PER_STEP,
    }
    total = parts["cores"] + max(parts["network"], parts["scheduler"]) + parts["storage"]
    held = (GRAPH_BYTES * n_cut + 4 * (3 * n_cut + 2 * halo) * panel) / n_workers
    limit = max(parts, key=parts.__getitem__)
    if held > MEMORY:
        limit = "memory: does not fit"
    elif micro:
        limit += f", {micro / 1e6:.0f} million micro-clusters"
    hours = total / 3600
    memory = max(held, 0.4 * MEMORY)
    return Estimate(hours, memory, between, written, hours * n_workers * DOLLARS_PER_HOUR, limit)


def cost_rows(costs: dict[str, Cost]) -> Iterable[str]:
    yield "| stages | core ms per image | kB read | kB written |"
    yield "|---|---|---|---|"
    for group, cost in costs.items():
        read, written = cost.read / 1e3, cost.written / 1e3
        yield f"| {group} | {cost.seconds * 1e3:.2f} | {read:.1f} | {written:.1f} |"


def estimate_rows(model: Model) -> Iterable[str]:
    yield (
        "| images | workers | hours, ready features | hours, photographs | memory per worker (GB) "
        "| between workers (TB) | storage (TB) | dollars, photographs | what limits it |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for n_images in (10**7, 10**8, 10**9):
        for n_workers in (1, 10, 100, 1000):
            ready, whole = (
                estimate(n_images, n_workers, model, encode=encode) for encode in (False, True)
            )
            yield (
                f"| 10^{round(math.log10(n_images))} | {n_workers:,} | {_short(ready.hours)} | "
                f"{_short(whole.hours)} | {ready.memory / 1e9:.1f} | "
                f"{_short(ready.between / 1e12)} | {_short(ready.storage / 1e12)} | "
                f"{_short(whole.dollars)} | {ready.limit} |"
            )


def peaks_of(line: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the peak memory of a run, and of the stages that take most."""
    stages = line["peak_by_stage"]
    edges = max(stages[name] for name in ("union", "components", "cut-off", "normalize"))
    found = {"neighbours": stages["neighbors"], "edges": edges, "cells": stages["cells"]}
    for name, peak in (found | {"all stages": max(line["peak_memory"])}).items():
        yield {"method": name, "partitions": line["partitions"], "peak (GB)": peak / 1e9}


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="lines of distributed_stages.py")
    parser.add_argument("--draw", type=Path, help="an SVG of memory against partitions, instead")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.runs.read_text().splitlines()]
    if args.draw:
        args.draw.write_text(draw_partitions([row for line in lines for row in peaks_of(line)]))
        return
    model = fit_model(lines)
    print("\n".join(cost_rows(model.costs)), "\n")
    print("\n".join(checked_rows(model, lines)), "\n")
    print("\n".join(estimate_rows(model)))


if __name__ == "__main__":
    main()
