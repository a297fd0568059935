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

from nouncut.compute.eigen import guard_vectors
from nouncut.distributed.coarsen import count_micro_clusters
from nouncut.distributed.sizes import GRAPH_BYTES, Sizes
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
GROUPS = {
    "reading and sorting": ("features", "sample", "cells", "sort", "partitions", "nodes", "layout"),
    "neighbours": ("visits", "neighbors", "homes", "union", "components", "kept", "cut-off"),
    "labels and tables": ("labels", "embedding", "sizes", "final", "temperature", "judged"),
}
REST = "prompt weights and eigenvectors"


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
        "reading and sorting": width,
        "neighbours": width * (1 + PROMPTS) / (1 + line["prompts"]),
        "labels and tables": vectors,
        REST: vectors * (1 if line["prompts"] else SOLUTIONS),
    }


def fitted_costs(lines: list[dict[str, Any]]) -> dict[str, Cost]:
    """Return the mean costs per image of all runs, for the run that is priced."""
    totals: dict[str, list[Cost]] = {}
    for line in lines:
        for group, cost in measured_costs(line).items():
            totals.setdefault(group, []).append(Cost(*(scales(line)[group] * x for x in cost)))
    return {group: Cost(*np.mean(costs, axis=0)) for group, costs in totals.items()}


def checked_rows(costs: dict[str, Cost], lines: list[dict[str, Any]]) -> Iterable[str]:
    yield "| images | prompts | features | clusters | core s, measured | core s, model |"
    yield "|---|---|---|---|---|---|"
    for line in lines:
        n, by = line["images"], scales(line)
        model = sum(cost.seconds / by[group] for group, cost in costs.items()) * n
        about = f"{n:,} | {line['prompts']} | {line['dim']} | {line['clusters']}"
        yield f"| {about} | {line['cpu_seconds']:,.0f} | {model:,.0f} |"


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


def estimate(
    n_images: int, n_workers: int, costs: dict[str, Cost], line: dict[str, Any], *, encode: bool
) -> Estimate:
    """Estimate a run on workers of one core each."""
    sizes = Sizes(n_images, WIDTH, PROMPTS, MEMORY, n_workers)
    micro = count_micro_clusters("auto", sizes)
    n_cut = micro or n_images
    inner = sizes._replace(n_images=n_cut)
    cell = n_cut / inner.cells
    usual = line["images"] / Sizes(line["images"], line["dim"], 2, int(line["memory"])).cells
    seconds = (ENCODING_SECONDS if encode else 0) * n_images
    seconds += costs["reading and sorting"].seconds * n_images
    seconds += costs["neighbours"].seconds * n_cut * max(1.0, cell / usual)
    seconds += (costs[REST].seconds + costs["labels and tables"].seconds) * n_cut
    vectors = vectors_of(n_cut, CLUSTERS)
    # Every worker holds consecutive partitions as one.
    n_bundles = min(n_workers, inner.partitions(NEIGHBORS, vectors))
    halo = int(line["halo"] / line["images"] * n_cut * (1 - 1 / n_bundles))
    panel = inner.panel(n_cut, halo)
    n_products = products_of(line)
    between = 4 * halo * vectors * n_products
    files = sum(cost.read + cost.written for cost in costs.values()) * n_images
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
    written = sum(cost.written for cost in costs.values()) * n_images
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


def estimate_rows(costs: dict[str, Cost], line: dict[str, Any]) -> Iterable[str]:
    yield (
        "| images | workers | hours, ready features | hours, photographs | memory per worker (GB) "
        "| between workers (TB) | storage (TB) | dollars, photographs | what limits it |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for n_images in (10**7, 10**8, 10**9):
        for n_workers in (1, 10, 100, 1000):
            ready, whole = (
                estimate(n_images, n_workers, costs, line, encode=encode)
                for encode in (False, True)
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
    # Runs without nouns do less in every comparison: they check the model.
    with_nouns = [line for line in lines if line["prompts"]]
    largest = max(with_nouns, key=lambda line: line["images"])
    costs = fitted_costs(with_nouns)
    print("\n".join(cost_rows(costs)), "\n")
    print("\n".join(checked_rows(costs, lines)), "\n")
    print("\n".join(estimate_rows(costs, largest)))


if __name__ == "__main__":
    main()
