"""Compare clusters of one machine with those from a folder, tars, parquet and S3 on Dask.

    python benchmarks/distributed_sources.py FOLDER --clusters 10 --json

Clusters a folder on one machine, then the same images on a local Dask cluster from every kind of
source. The S3 server is moto's, on loopback; `pip install "moto[s3]" flask flask-cors s3fs`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import adjusted_rand_score

from nouncut import cluster_images
from nouncut.distributed.client import connect
from nouncut.runs.run import Run
from nouncut.store.store import FeatureStore

_PER_TAR = 250


def write_tars(files: list[Path], folder: Path) -> None:
    folder.mkdir()
    for start in range(0, len(files), _PER_TAR):
        with tarfile.open(folder / f"photos-{start:06d}.tar", "w") as tar:
            for number, path in enumerate(files[start : start + _PER_TAR], start):
                tar.add(path, f"{number:06d}{path.suffix}")


def write_parquet(files: list[Path], path: Path) -> None:
    rows = [{"image": {"bytes": file.read_bytes(), "path": file.name}} for file in files]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)


@contextmanager
def s3_copy(files: list[Path], folder: Path) -> Iterator[str]:
    """Serve the photographs from an S3 server; workers find it by the environment."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
    }
    system = fsspec.filesystem("s3")
    system.mkdir("photos")
    for file in files:
        system.pipe_file(f"photos/in/{file.relative_to(folder).as_posix()}", file.read_bytes())
    try:
        yield "s3://photos/in"
    finally:
        server.stop()


def compare(run: Run, one: Run, seconds: float) -> dict[str, Any]:
    hashes = dict(zip(one.images["hash"].to_pylist(), one.labels.tolist(), strict=False))
    own = run.images["hash"].to_pylist()[: len(run.labels)]
    names = set(run.names) & set(one.names)
    return {
        "images": len(run.labels),
        "same images in the same order": own == one.images["hash"].to_pylist()[: len(own)],
        "ARI with one machine": round(
            adjusted_rand_score([hashes[key] for key in own], run.labels), 4
        ),
        "clusters": len(run.clusters),
        "names in common": len(names),
        "thumbnails": len({p.stem for p in run.directory.glob("report-thumbnails/*/*.webp")}),
        "seconds": round(seconds, 1),
    }


def measure(folder: Path, n_clusters: int, scratch: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_tars(files, scratch / "tars")
    write_parquet(files, scratch / "photos.parquet")
    store = FeatureStore(scratch / "store")
    common: dict[str, Any] = {"model": "mini", "store": store}
    begin = time.perf_counter()
    one = cluster_images(folder, n_clusters, output=scratch / "one", **common)
    found = {"one machine": compare(one, one, time.perf_counter() - begin)}
    with s3_copy(files, folder) as address, connect("local:2") as client:
        sources = {
            "folder": str(folder),
            "tars": str(scratch / "tars"),
            "parquet": str(scratch / "photos.parquet"),
            "S3": address,
        }
        for name, source in sources.items():
            begin = time.perf_counter()
            run = cluster_images(
                source, n_clusters, output=scratch / f"run-{name}", client=client, **common
            )
            found[name] = compare(run, one, time.perf_counter() - begin)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(chosen.folder.absolute(), chosen.clusters, Path(scratch))
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for name, row in found.items():
        print(name, *(f"{key}: {value}" for key, value in row.items()), sep="\n  ")


if __name__ == "__main__":
    main()
