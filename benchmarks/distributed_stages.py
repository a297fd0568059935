"""Seconds, bytes and memory of every stage on a local Dask cluster.

``python benchmarks/distributed_stages.py --images 200000 --partitions 8 --output d.jsonl`` makes
CLIP-like images in shards, clusters them, and appends one line of JSON: per stage the
seconds of all tasks, the bytes read and written and the peak memory of a worker (sampled), and
with ``--compare`` the agreement with the estimator on one machine. With ``--folder`` the files
stay: the same command continues an interrupted benchmark. ``distributed_cost.py`` fits a cost
model to the lines.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.metrics import adjusted_rand_score

from _setting import setting
from nouncut import NTKSpectralClustering
from nouncut.compute.progress import ProgressLine
from nouncut.distributed.cells import Coupling, sample_shard
from nouncut.distributed.client import connect, worker_memory
from nouncut.distributed.features import feature_shards, read_shard
from nouncut.distributed.fit import FitOptions, PartitionedFit, Shards, fit_shards
from nouncut.distributed.result import finish_labels
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.stages import Engine, StageCount, Task
from nouncut.distributed.storage import Storage
from nouncut.method.ensemble import ensemble_graphs
from nouncut.method.graphs import choose_neighbors, normalize_graph, symmetric_graphs
from nouncut.method.merge import count_pieces
from nouncut.method.neighbors import Neighbors
from nouncut.paper.synthetic import make_clip_like

TAU = 0.04
# Numbers that the data of all sizes share; a shard is made at a time.
IMAGES_PER_FILE = 100_000
# Stages of one kind, such as the rounds of the eigensolver, are summed.
KINDS = ("eigen", "weigh", "labels", "visits", "neighbors", "homes", "normalize", "mean", "place")


def make_source(folder: Path, args: argparse.Namespace) -> tuple[np.ndarray, list[np.ndarray]]:
    """Write features in files; return the true labels and the noun features.

    All files come from one call with one seed, so that they share classes and nouns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = make_clip_like(
        args.images,
        args.clusters,
        n_nouns=args.nouns,
        n_prompts=max(1, args.prompts),
        dim=args.dim,
        separation=args.separation,
        random_state=0,
    )
    for number, first in enumerate(range(0, args.images, IMAGES_PER_FILE)):
        np.save(folder / f"{number:05d}.npy", made.features[first : first + IMAGES_PER_FILE])
    return made.labels, made.noun_features[: args.prompts]


class MemoryWatch(threading.Thread):
    """Samples the memory of all worker processes: what is theirs alone, without mapped files."""

    def __init__(self, counts: dict[str, StageCount]) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[int, int] = defaultdict(int)
        self.by_kind: dict[str, int] = defaultdict(int)
        self._counts = counts  # The last stage in it is running.
        self._stop_now = threading.Event()

    def run(self) -> None:
        own = psutil.Process()
        while not self._stop_now.wait(0.1):
            kind = kind_of(next(reversed(self._counts), "start"))
            for child in own.children(recursive=True):
                try:
                    info = child.memory_info()
                except psutil.Error:
                    continue
                used = info.rss - getattr(info, "shared", 0)
                self.peaks[child.pid] = max(self.peaks[child.pid], used)
                self.by_kind[kind] = max(self.by_kind[kind], used)

    def stop(self) -> list[int]:
        self._stop_now.set()
        self.join()
        return sorted(self.peaks.values(), reverse=True)


def run_cluster(
    folder: Path, nouns: list[np.ndarray], args: argparse.Namespace
) -> tuple[np.ndarray, dict[str, Any]]:
    with connect(f"local:{args.workers}", memory_limit=args.memory) as client:
        start, began_as = time.perf_counter(), set(client.run(os.getpid).values())
        engine = Engine(client, Storage(str(folder / "work")), ProgressLine())
        watch = MemoryWatch(engine.counts)
        watch.start()
        memory = worker_memory(client)
        listed = feature_shards([str(folder / "source")], memory)
        tasks = [
            Task(f"{i:05d}", read_shard, {"number": i, "shard": shard})
            for i, shard in enumerate(listed)
        ]
        shards = Shards([one["n_rows"] for one in engine.run("features", tasks)])
        sizes = Sizes(args.images, args.dim, max(1, len(nouns)), memory, args.workers)
        plain = {"n_images": args.images, "size": sizes.sample, "has_semantic": False}
        tasks = [
            Task(f"{i:05d}", sample_shard, {"shard": i, "start": first} | plain)
            for i, first in enumerate(shards.starts)
        ]
        engine.run("sample", tasks)
        coupling = Coupling(TAU, 1.0, has_nouns=bool(nouns))
        if nouns:
            engine.storage.write("choices/nouns.npy", np.stack(nouns))
        q = choose_neighbors(args.images, args.clusters)
        options = FitOptions(args.clusters, q, 0, args.partitions)
        fit = fit_shards(engine, shards, coupling, sizes, options)
        finish_labels(fit, coupling)
        seconds, halo = time.perf_counter() - start, fit.graph.bundled().n_halo
        labels = read_labels(engine.storage, fit, args.images)
        peaks = watch.stop()
        cpu = sum(client.run(time.process_time).values())
        sent, spilled = (sum(client.run(count).values()) for count in (bytes_sent, bytes_spilled))
        n_restarted = len(set(client.run(os.getpid).values()) - began_as)
    found = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "bytes_between_workers": sent,
        "bytes_spilled": spilled,
        "workers_restarted": n_restarted,
        "stages": stage_costs(engine),
        "peak_memory": peaks[: args.workers],
        "peak_by_stage": dict(watch.by_kind),
        "partitions": fit.graph.n_partitions,
        "halo": sum(offsets[-1] for offsets in fit.graph.offsets),
        "halo_between_workers": halo,
        "recall": fit.search.recall,
        "n_cells": len(fit.layout.cells) - 1,
        "searches": fit.search.efforts,
        "weights": fit.prompts.weights.tolist(),
    }
    return labels, found


def kind_of(stage: str) -> str:
    """Return the kind of a stage, such as the rounds of the eigensolver."""
    return next((kind for kind in KINDS if stage.startswith(kind)), stage)


def bytes_sent(dask_worker: Any) -> int:
    """Return what a worker has sent to others; Dask calls it on the worker."""
    return int(dask_worker.digests_total.get(("get-data", "memory-read", "bytes"), 0))


def bytes_spilled(dask_worker: Any) -> int:
    """Return what a worker has moved from memory to its disk; Dask calls it on the worker."""
    totals = dask_worker.digests_total.items()
    return int(sum(n for key, n in totals if "disk-write" in key and key[-1] == "bytes"))


def read_labels(storage: Storage, fit: PartitionedFit, n_images: int) -> np.ndarray:
    labels = np.empty(n_images, np.int32)
    for p in range(fit.graph.n_partitions):
        own = storage.read(f"final/{p:05d}.npy")
        copies = storage.read(f"nodes/{p:05d}/copies.npy")
        labels[storage.read(f"nodes/{p:05d}/rows.npy")] = own
        labels[copies[:, 0]] = own[copies[:, 1]]
    return labels


def stage_costs(engine: Engine) -> dict[str, dict[str, float]]:
    """Sum the costs of stages of one kind."""
    total: dict[str, dict[str, float]] = {}
    for stage, count in engine.counts.items():
        own = total.setdefault(
            kind_of(stage), {"tasks": 0, "seconds": 0.0, "cpu": 0.0, "read": 0, "written": 0}
        )
        own["tasks"] += count.n_tasks
        own["seconds"] += count.seconds
        own["cpu"] += count.cpu_seconds
        own["read"] += count.bytes_read
        own["written"] += count.bytes_written
    return total


def compare(
    folder: Path, nouns: list[np.ndarray], labels: np.ndarray, weights: list[float], k: int
) -> dict[str, float]:
    features = np.concatenate([np.load(path) for path in sorted((folder / "source").iterdir())])
    start = time.perf_counter()
    model = NTKSpectralClustering(k, random_state=0, n_jobs=-1)
    model.fit(features, noun_features=nouns or None, progress=ProgressLine())
    return {
        "one_machine_seconds": time.perf_counter() - start,
        "one_machine_recall": model.neighbor_recall_,
        "ari": float(adjusted_rand_score(model.labels_, labels)),
        "weight_error": float(np.abs(model.prompt_weights_ - weights).max()),
    }


def weights_on_same_neighbors(storage: Storage, n_partitions: int, k: int) -> np.ndarray:
    """Return the prompt weights that one machine finds for the neighbours of the cluster.

    Made images have no copies, so nodes are images in another order.
    """
    attempt = sum(name.startswith("recall-") for name in storage.sizes("stages")) - 1
    folder, parts = f"neighbors-{attempt}", range(n_partitions)
    images = np.concatenate([storage.read(f"nodes/{p:05d}/rows.npy") for p in parts])
    found = [storage.read_several(f"{folder}/{p:05d}.npz") for p in parts]
    nodes, back = np.append(images, -1), np.argsort(images)
    neighbors = [
        Neighbors(nodes[np.concatenate(indices)[back]], np.concatenate(values)[back])
        for indices, values in zip(
            zip(*(part["indices"] for part in found), strict=True),
            zip(*(part["values"] for part in found), strict=True),
            strict=True,
        )
    ]
    graphs = [normalize_graph(graph)[0] for graph in symmetric_graphs(neighbors)]
    n_pieces = count_pieces(len(images), k)
    return ensemble_graphs(graphs, n_pieces, random_state=0, n_threads=2).prompts.weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=30_000)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--nouns", type=int, default=300)
    parser.add_argument("--prompts", type=int, default=2, help="0: by looks alone")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--separation", type=float, default=0.45)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=lambda text: int(float(text)), default=2 * 10**9)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--folder", type=Path, help="keeps the files; a temporary one by default")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        truth, nouns = make_source(folder / "source", args)
        labels, found = run_cluster(folder, nouns, args)
        found |= {"ari_truth": float(adjusted_rand_score(truth, labels))}
        if args.compare:
            found |= compare(folder, nouns, labels, found["weights"], args.clusters)
            if args.prompts > 1:
                storage = Storage(str(folder / "work"))
                own = weights_on_same_neighbors(storage, found["partitions"], args.clusters)
                same = float(np.abs(own - found["weights"]).max())
                found["weight_error_on_same_neighbors"] = same
    about = {key: value for key, value in vars(args).items() if key not in ("folder", "output")}
    line = json.dumps(about | found | setting("dask", "distributed"))
    print(line)
    if args.output:
        with args.output.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
