"""Cluster images with the nodes of a SLURM cluster.

    pip install "nouncut[distributed]" dask-jobqueue
    python examples/distributed/slurm.py /scratch/me/photos /scratch/me/run

Run it on a node that may submit jobs, in tmux or as a small job of its own: it waits for the
result. If it is stopped, run it again; what is finished is not repeated. Both folders must be on a
drive that all nodes share.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Client

from nouncut import cluster_images


def main(source: str, output: str) -> None:
    """Start workers as jobs, and cluster the images."""
    with (
        SLURMCluster(
            # One job is one node's share: eight processes with one thread and 4 GB each.
            cores=8,
            processes=8,
            memory="32GB",
            walltime="04:00:00",
            queue="compute",
            # With graphics processors: processes=1 and job_extra_directives=["--gres=gpu:1"].
            local_directory="$TMPDIR",
            # Workers that keep freed memory for the next task are up to twice as fast.
            job_script_prologue=[
                "export OMP_NUM_THREADS=1",
                "export MALLOC_TRIM_THRESHOLD_=16777216 MALLOC_MMAP_THRESHOLD_=4194304",
            ],
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.adapt(minimum_jobs=1, maximum_jobs=16)
        client.wait_for_workers(8)
        print("Dask's dashboard:", client.dashboard_link)
        is_begun = (Path(output) / "work" / "plan.json").exists()
        run = cluster_images(source, output=output, client=client, resume=is_begun)
    for name, size in zip(run.names, run.clusters["size"].to_pylist(), strict=True):
        print(f"{size:>9,}  {name}")
    print(run.report)


if __name__ == "__main__":
    main(*sys.argv[1:3])
