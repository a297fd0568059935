"""What micro-clusters cost: agreement with the true classes for fewer and fewer of them.

``python benchmarks/distributed_coarsen.py`` makes CLIP-like images, clusters them on a local Dask
cluster, by looks or with nouns, as they are and as micro-clusters, and prints a Markdown table.
``--per-micro-cluster 0`` leaves their number to the memory of the cluster.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from _setting import setting
from distributed_stages import MemoryWatch, bytes_spilled
from nouncut import cluster_images
from nouncut.distributed.client import connect
from nouncut.paper.synthetic import make_clip_like


def make_source(
    folder: Path, separation: float, args: argparse.Namespace
) -> tuple[Path, str, np.ndarray]:
    """Write features and nouns; return where the features are, the model, and the true labels."""
    made = make_clip_like(
        args.images,
        args.clusters,
        n_nouns=max(1, args.nouns),
        n_prompts=args.prompts,
        dim=args.dim,
        separation=separation,
        random_state=0,
    )
    source, model = folder / "features", folder / "nouns.npz"
    source.mkdir(parents=True)
    for number, part in enumerate(np.array_split(made.features, args.files)):
        np.save(source / f"{number:03}.npy", part)
    words = [f"noun {number}" for number in range(args.nouns)]
    np.savez(model, nouns=words, features=np.stack(made.noun_features)[:, : len(words)])
    first = source / "000.npy"
    return first if args.files == 1 else source, str(model) if words else "auto", made.labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--separation", type=float, nargs="+", default=[0.2, 0.3])
    parser.add_argument("--per-micro-cluster", type=int, nargs="+", default=[4, 10, 25, 100])
    parser.add_argument("--nouns", type=int, default=0, help="0: by looks alone")
    parser.add_argument("--prompts", type=int, default=1)
    parser.add_argument("--files", type=int, default=1, help="images are grouped in each")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--memory", type=lambda text: int(float(text)), help="of each worker")
    parser.add_argument("--only-micro", action="store_true", help="do not cut the images")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| separation | micro-clusters | NMI | ARI | seconds | largest worker (GB) | spilled (GB) |"
        "\n|---|---|---|---|---|---|---|"
    )
    local = connect(f"local:{args.workers}", memory_limit=args.memory)
    with local as client, tempfile.TemporaryDirectory() as folder:
        for separation in args.separation:
            source, model, truth = make_source(Path(folder, str(separation)), separation, args)
            for size in (*([] if args.only_micro else [1]), *args.per_micro_cluster):
                start, watch = time.perf_counter(), MemoryWatch({})
                watch.start()
                run = cluster_images(
                    source,
                    args.clusters,
                    output=Path(folder, f"run-{separation}-{size}"),
                    client=client,
                    model=model,
                    coarsen={0: "auto", 1: "never"}.get(size, args.images // max(1, size)),
                )
                seconds, peak = time.perf_counter() - start, watch.stop()[0] / 1e9
                spilled = sum(client.run(bytes_spilled).values()) / 1e9
                labels = run.labels
                nmi, ari = (
                    score(truth, labels)
                    for score in (normalized_mutual_info_score, adjusted_rand_score)
                )
                number = run.manifest.get("micro_clusters", {}).get("number", "none")
                print(
                    f"| {separation} | {number} | {nmi:.3f} | {ari:.3f} | {seconds:.0f} | "
                    f"{peak:.2f} | {spilled:.2f} |",
                    flush=True,
                )
    print(setting())


if __name__ == "__main__":
    main()
