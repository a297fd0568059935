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
from nouncut.distributed.coarsen import count_micro_clusters
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


def work_of(line: dict[str, Any]) -> NDArray[np.float64]:
    """Return what the searches of a measured run did per image."""
    cell = line["images"] / line["n_cells"]
    return search_work(cell, line["searches"], line["dim"], line["prompts"])


class Model(NamedTuple):
    """Costs per image of the priced run, seconds per unit of `search_work`, and a run like it."""

    costs: dict[str, Cost]
    rates: NDArray[np.float64]
    like: dict[str, Any]

    def seconds(self, n_images: int, n_cut: int, work: NDArray[np.float64]) -> float:
        """Return the core seconds of a run that cuts images, or micro-clusters of them."""
        cut = self.costs[REST].seconds + self.costs[LABELS].seconds + float(self.rates @ work)
        return self.costs[READING].seconds * n_images + cut * n_cut


def fit_model(lines: list[dict[str, Any]]) -> Model:
    """Fit the mean costs per image of runs with prompts, and the rates of all searches."""
    totals: dict[str, list[Cost]] = {}
    with_prompts = [line for line in lines if line["prompts"]]
    for line in with_prompts:
        for group, cost in measured_costs(line).items():
            totals.setdefault(group, []).append(Cost(*(scales(line)[group] * x for x in cost)))
    costs = {group: Cost(*np.mean(found, axis=0)) for group, found in totals.items()}
    seconds = np.array([measured_costs(line)[SEARCH].seconds for line in lines])
    work = np.array([work_of(line) for line in lines])
    # Relative errors count alike in short and long runs. Units differ by orders of magnitude.
    units = work.max(axis=0)
    rates = nnls(work / units / seconds[:, None], np.ones(len(lines)))[0] / units
    like = max(with_prompts, key=lambda line: (line["prompts"], line["images"]))
    priced = search_work(like["images"] / like["n_cells"], like["searches"], WIDTH, PROMPTS)
    costs[SEARCH] = costs[SEARCH]._replace(seconds=float(rates @ priced))
    return Model(costs, rates, like)


def checked_rows(model: Model, lines: list[dict[str, Any]]) -> Iterable[str]:
    yield (
        "| images | prompts | features | clusters | near cells and candidates of all searches "
        "| core s, neighbours | model | core s, all | model |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for line in lines:
        n, by = line["images"], scales(line)
        search = float(model.rates @ work_of(line)) * n
        others = {key: cost for key, cost in model.costs.items() if key != SEARCH}
        rest = sum(cost.seconds / by[key] for key, cost in others.items()) * n
        measured = measured_costs(line)[SEARCH].seconds * n
        efforts = ", then ".join(f"{near} and {number}" for near, number in line["searches"])
        about = f"{n:,} | {line['prompts']} | {line['dim']} | {line['clusters']} | {efforts}"
        found = (
            f"{measured:,.0f} | {search:,.0f} | {line['cpu_seconds']:,.0f} | {search + rest:,.0f}"
        )
        yield f"| {about} | {found} |"


def vectors_of(n_images: int, n_clusters: int) -> int:
    pieces = count_pieces(n_images, n_clusters)
    return pieces + guard_vectors(pieces)


def products_of(line: dict[str, Any]) -> float:
    """Return how often a run multiplied the graph with all vectors, from the bytes it sent."""
    vectors = vectors_of(line["images"], line["clusters"])
    return float(line["bytes_between_workers"] / (4 * line["halo_between_workers"] * vectors))


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
    seconds = model.seconds(n_images, n_cut, work)
    seconds += (ENCODING_SECONDS if encode else 0) * n_images
    vectors = vectors_of(n_cut, CLUSTERS)
    # Every worker holds consecutive partitions as one.
    n_bundles = min(n_workers, inner.partitions(NEIGHBORS, vectors))
    halo = int(line["halo"] / line["images"] * n_cut * (1 - 1 / n_bundles))
    panel = inner.panel(n_cut, halo)
    n_products = products_of(line)
    between = 4 * halo * vectors * n_products
    costs = model.costs.values()
    files = sum(cost.read + cost.written for cost in costs) * n_images
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
    written = sum(cost.written for cost in costs) * n_images
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


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="lines of distributed_stages.py")
    parser.add_argument("--draw", type=Path, help="an SVG of memory against partitions, instead")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.runs.read_text().splitlines()]
    if args.draw:
        peaks = {line["partitions"]: max(line["peak_memory"]) / 1e9 for line in lines}
        rows = [{"method": "nouncut", "partitions": p, "peak (GB)": gb} for p, gb in peaks.items()]
        args.draw.write_text(draw_partitions(rows))
        return
    model = fit_model(lines)
    print("\n".join(cost_rows(model.costs)), "\n")
    print("\n".join(checked_rows(model, lines)), "\n")
    print("\n".join(estimate_rows(model)))


if __name__ == "__main__":
    main()
